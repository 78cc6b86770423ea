// SPDX-License-Identifier: Apache-2.0
//===- Model.cpp - An opened .bmodel --------------------------------------===//
#include "Model.h"

#include "Contract.h"
#include "Count.h"
#include "CustomOps.h"
#include "Integrity.h"
#include "ScheduleBuilder.h"
#include "Sizes.h"

#include <cinttypes>
#include <cstring>

using namespace bmrt::core;

bmrt_model_t::~bmrt_model_t() {
  for (size_t i = 0; i < loadedCount; ++i) {
    loaded[i].backend->unload(loaded[i].program);
  }
}

bmrt_code_t bmrt_model_t::open(MappedFile mapped, const char *name, const bmrt_open_options_t &options,
                               bmrt_status_t *status) {
  file = std::move(mapped);
  bmodel::Status cause;
  if (!bmodel::openModel(file.data(), file.bytes(), view, cause) ||
      !checkIntegrity(view, options.trust_constants, file.isMapped(), cause)) {
    return fail(status, cause, name);
  }
  BMRT_RETURN_IF_ERROR(chooseDevices(options.device, status));
  return loadStages(name, status);
}

/// Selects the machine's chips: |wanted| is bmrt_open_options_t.device.
bmrt_code_t bmrt_model_t::chooseDevices(const char *wanted, bmrt_status_t *status) {
  constexpr unsigned long kMostDevices = 4096;
  if (!ordinals.allocate(count(view.model->chips()))) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for the model's chips");
  }
  if (!wanted || !*wanted) {
    return BMRT_OK;
  }
  const char *colon = strchr(wanted, ':');
  const size_t length = colon ? size_t(colon - wanted) : strlen(wanted);
  char *end = nullptr;
  const unsigned long number = colon ? strtoul(colon + 1, &end, 10) : 0;
  if (colon && (colon[1] < '0' || colon[1] > '9' || *end || number >= kMostDevices)) {
    return BMRT_FAIL(status, INVALID_ARGUMENT, "the device '%.60s' must be a family, a colon and a number", wanted);
  }
  bool isFound = false;
  for (uint32_t i = 0; i < ordinals.size(); ++i) {
    const flatbuffers::String *family = view.model->chips()->Get(i)->family();
    if (family && family->size() == length && memcmp(family->c_str(), wanted, length) == 0) {
      ordinals[i] = colon ? uint32_t(number) + 1 : 0;
      isFound = true;
    }
  }
  return isFound ? BMRT_OK
                 : BMRT_FAIL(status, INVALID_ARGUMENT,
                             "the model has no chip for the device '%.60s'; its first chip is '%s'", wanted,
                             ordinals.size() ? view.model->chips()->Get(0)->name()->c_str() : "");
}

bmrt_code_t bmrt_model_t::loadStages(const char *name, bmrt_status_t *status) {
  size_t total = 0, subnets = 0;
  for (const bmodel::NetDef *net : *view.model->nets()) {
    total += count(net->stages());
    for (const bmodel::StageDef *stage : *net->stages()) {
      subnets += count(stage->subnets());
    }
  }
  if (!stages.allocate(total) || !loaded.allocate(subnets) || !devices.allocate(count(view.model->chips()))) {
    return BMRT_FAIL(status, NO_MEMORY, "failed to load '%.200s': no memory", name);
  }
  StageProgram *next = stages.begin();
  const StageProgram *rejected = nullptr;
  bool runnable = false;
  for (const bmodel::NetDef *net : *view.model->nets()) {
    for (uint32_t i = 0; i < count(net->stages()); ++i, ++next) {
      next->net = net;
      next->def = net->stages()->Get(i);
      next->stageIndex = i;
      const bmrt_code_t code = loadStage(*next, &next->rejection);
      // Mark a stage for another machine as not runnable; any other error makes the whole file unusable.
      if (code != BMRT_OK && code != BMRT_UNSUPPORTED) {
        return fail(status, code, next->rejection.file, next->rejection.line,
                    "failed to load '%.120s': net '%.40s' stage %" PRIu32 ": %.280s", name, net->name()->c_str(), i,
                    next->rejection.message);
      }
      runnable |= code == BMRT_OK;
      rejected = code == BMRT_OK ? rejected : next;
    }
  }
  if (!runnable) {
    return fail(status, BMRT_UNSUPPORTED, rejected->rejection.file, rejected->rejection.line,
                "failed to load '%.120s': %.340s", name, rejected->rejection.message);
  }
  return constants.describe(view, stages, status);
}

bmrt_code_t bmrt_model_t::loadStage(StageProgram &stage, bmrt_status_t *status) {
  const uint32_t subnets = count(stage.def->subnets());
  if (!stage.subnets.allocate(subnets) || !stage.devices.allocate(devices.size())) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for %" PRIu32 " subnets", subnets);
  }
  BMRT_RETURN_IF_ERROR(classifyDims(stage, status));
  for (uint32_t i = 0; i < subnets; ++i) {
    stage.subnets[i].def = stage.def->subnets()->Get(i);
    BMRT_RETURN_IF_ERROR(loadSubnet(stage, stage.subnets[i], status));
  }
  BMRT_RETURN_IF_ERROR(openMemories(stage, status));
  BMRT_RETURN_IF_ERROR(findAlignments(stage, status));
  buildSchedule(stage, stage.schedule);
  return BMRT_OK;
}

/// Fills in all of a stream but its addresses. Streams on the host's memory get the file's first segment of constants.
bool bmrt_model_t::describeStream(const bmodel::StageDef &stage, const bmodel::SubnetDef &subnet,
                                  const bmodel::StepDef &step, Stream &stream) const {
  bmodel::StreamCall call;
  bmodel::findStreamCall(stage, step, call);
  const auto *layers = step.debug() ? step.debug()->onnx_nodes() : nullptr;
  const uint32_t inputs = count(call.inputs), total = inputs + count(call.outputs);
  if (!stream.slots.allocate(total) || !stream.bytes.allocate(total) || !stream.layers.allocate(count(layers))) {
    return false;
  }
  for (uint32_t i = 0; i < total; ++i) {
    stream.slots[i] = i < inputs ? call.inputs->Get(i) : call.outputs->Get(i - inputs);
    stream.bytes[i] = stage.tensors()->Get(stream.slots[i])->bytes();
  }
  for (uint32_t i = 0; i < count(layers); ++i) {
    stream.layers[i] = layers->Get(i)->c_str();
  }
  bmrt_stream_t &result = stream.call;
  result.struct_size = sizeof(result);
  result.code = view.segment(uint32_t(subnet.code_segment()));
  result.offset = call.offset, result.bytes = call.bytes;
  result.tensor_bytes = stream.bytes.data();
  result.input_count = inputs, result.output_count = total - inputs;
  result.dim_count = count(call.dims);
  result.layers = stream.layers.data(), result.layer_count = count(layers);
  if (const bmodel::WorkspaceDef *workspace = bmodel::streamWorkspace(stage, subnet)) {
    stream.workspace = subnet.workspace();
    result.workspace_bytes = workspace->bytes();
  }
  for (uint32_t i = 0; i < count(view.model->segments()) && !result.constants; ++i) {
    const bmodel::SegmentDef &segment = *view.model->segments()->Get(i);
    const bool isHosts = bmodel::memoryOf(*view.model, subnet) == bmodel::kHostMemory;
    if (isHosts && segment.kind() == bmodel::SegmentKind::Constants) {
      result.constants = view.segment(i);
      result.constant_bytes = segment.bytes();
    }
  }
  return true;
}

bmrt_code_t bmrt_model_t::loadStreams(const StageProgram &stage, SubnetProgram &subnet, bmrt_status_t *status) const {
  const bmodel::SubnetDef &def = *subnet.def;
  bmodel::StreamCall call;
  uint32_t total = 0, next = 0;
  for (uint32_t i = 0; i < count(def.plan()); ++i) {
    total += bmodel::findStreamCall(*stage.def, *def.plan()->Get(i), call);
  }
  if (total > 0 && !subnet.backend->verify) {
    return BMRT_FAIL(status, UNSUPPORTED,
                     "subnet '%.60s' has a stream of commands, which the back end of family '%s' does not support",
                     def.name()->c_str(), subnet.backend->family);
  }
  if (!subnet.streams.allocate(total)) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for %" PRIu32 " streams", total);
  }
  for (uint32_t i = 0; i < count(def.plan()); ++i) {
    const bmodel::StepDef &step = *def.plan()->Get(i);
    if (!bmodel::findStreamCall(*stage.def, step, call)) {
      continue;
    }
    Stream &stream = subnet.streams[next++];
    if (!describeStream(*stage.def, def, step, stream)) {
      return BMRT_FAIL(status, NO_MEMORY, "no memory for the tensors of a stream");
    }
    BMRT_RETURN_IF_ERROR(subnet.backend->verify(subnet.code, &stream.call, StatusOrOwn(status)));
  }
  return BMRT_OK;
}

bmrt_code_t bmrt_model_t::openDevice(uint32_t chip, const bmrt_backend_t &backend, Device **out,
                                     bmrt_status_t *status) {
  Device &device = devices[chip];
  const bmodel::ChipDef &def = *view.model->chips()->Get(chip);
  if (!device.isOpen()) {
    BMRT_RETURN_IF_ERROR(device.open(backend, def, ordinals[chip], status));
  } else if (device.backend != &backend) {
    return BMRT_FAIL(status, CORRUPT, "chip '%.60s' is used with two families, '%s' and '%s'", def.name()->c_str(),
                     device.backend->family, backend.family);
  }
  *out = &device;
  return BMRT_OK;
}

/// Finds the back end and the chip of a subnet; control subnets do not get a back end.
bmrt_code_t bmrt_model_t::findRunner(SubnetProgram &subnet, bmrt_status_t *status) {
  const bmodel::SubnetDef &def = *subnet.def;
  const char *family = bmodel::familyOf(*view.model, def);
  if (!family) {
    return BMRT_OK;
  }
  BMRT_RETURN_IF_ERROR(findBackend(family, &subnet.backend, status));
  if (bmodel::memoryOf(*view.model, def) == bmodel::kHostMemory && !worksOnHostMemory(*subnet.backend)) {
    return BMRT_FAIL(status, UNSUPPORTED,
                     "its code works on the host's memory, chips of family '%s' have their own: deploy the model anew",
                     family);
  }
  return subnet.usesQueue() ? openDevice(def.chip(), *subnet.backend, &subnet.device, status) : BMRT_OK;
}

/// Opens all chips in whose memory the stage has tensors, even if they run none of its code.
bmrt_code_t bmrt_model_t::openMemories(StageProgram &stage, bmrt_status_t *status) {
  auto open = [&](int32_t memory) -> bmrt_code_t {
    if (memory == bmodel::kHostMemory || stage.devices[uint32_t(memory)]) {
      return BMRT_OK;
    }
    const bmodel::ChipDef &chip = *view.model->chips()->Get(uint32_t(memory));
    const bmrt_backend_t *backend = nullptr;
    BMRT_RETURN_IF_ERROR(findBackend(chip.family() ? chip.family()->c_str() : "", &backend, status));
    return openDevice(uint32_t(memory), *backend, &stage.devices[uint32_t(memory)], status);
  };
  for (uint32_t i = 0; i < count(stage.def->tensors()); ++i) {
    BMRT_RETURN_IF_ERROR(open(bmodel::memoryOf(*stage.def, *stage.def->tensors()->Get(i))));
  }
  for (uint32_t i = 0; i < count(stage.def->workspaces()); ++i) {
    const bmodel::WorkspaceDef &workspace = *stage.def->workspaces()->Get(i);
    BMRT_RETURN_IF_ERROR(
        open(workspace.memory() == bmodel::MemoryKind::Device ? int32_t(workspace.chip()) : bmodel::kHostMemory));
  }
  return BMRT_OK;
}

bmrt_code_t bmrt_model_t::loadCode(SubnetProgram &subnet, bmrt_status_t *status) {
  const uint32_t segment = uint32_t(subnet.def->code_segment());
  for (size_t i = 0; i < loadedCount; ++i) {
    const Code &code = loaded[i];
    if (code.segment == segment && code.backend == subnet.backend && code.device == subnet.device) {
      subnet.code = code.program;
      return BMRT_OK;
    }
  }
  bmrt_device_t *device = subnet.device ? subnet.device->handle : nullptr;
  BMRT_RETURN_IF_ERROR(subnet.backend->load(
      device, view.segment(segment), view.model->segments()->Get(segment)->bytes(), &subnet.code, StatusOrOwn(status)));
  loaded[loadedCount++] = {segment, subnet.backend, subnet.device, subnet.code};
  return BMRT_OK;
}

bmrt_code_t bmrt_model_t::loadKernels(SubnetProgram &subnet, bmrt_status_t *status) {
  const bmodel::SubnetDef &def = *subnet.def;
  if (!subnet.kernels.allocate(count(def.kernels()))) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for %" PRIu32 " kernels", count(def.kernels()));
  }
  if (subnet.kernels.size() > 0 && !subnet.backend->find_kernel) {
    return BMRT_FAIL(status, UNSUPPORTED,
                     "subnet '%.60s' has kernels, which the back end of family '%s' does not support",
                     def.name()->c_str(), subnet.backend->family);
  }
  for (uint32_t i = 0; i < subnet.kernels.size(); ++i) {
    if (def.kernels()->Get(i)->custom()) {
      continue;
    }
    const char *symbol = def.kernels()->Get(i)->symbol()->c_str();
    subnet.kernels[i] = subnet.backend->find_kernel(subnet.code, symbol);
    if (!subnet.kernels[i]) {
      return BMRT_FAIL(status, CORRUPT, "kernel '%.80s' of subnet '%.60s' is not in its code", symbol,
                       def.name()->c_str());
    }
  }
  return BMRT_OK;
}

bmrt_code_t bmrt_model_t::loadSubnet(StageProgram &stage, SubnetProgram &subnet, bmrt_status_t *status) {
  const bmodel::SubnetDef &def = *subnet.def;
  bmrt_status_t cause = {};
  if (bmrt_code_t code = findRunner(subnet, &cause); code != BMRT_OK) {
    return fail(status, code, cause.file, cause.line, "subnet '%.60s': %.400s", def.name()->c_str(), cause.message);
  }
  if (!subnet.backend) {
    return BMRT_OK;
  }
  if (subnet.usesQueue()) {
    stage.devices[def.chip()] = subnet.device;
  }
  if (subnet.backend->check) {
    const bmrt_subnet_t asked = {sizeof(asked),      def.name()->c_str(), def.isa() ? def.isa()->c_str() : "",
                                 def.cpu_features(), def.kernel_abi(),    count(def.kernels())};
    bmrt_device_t *device = subnet.device ? subnet.device->handle : nullptr;
    BMRT_RETURN_IF_ERROR(subnet.backend->check(device, &asked, StatusOrOwn(status)));
  }
  if (def.code_segment() >= 0) {
    BMRT_RETURN_IF_ERROR(loadCode(subnet, status));
    BMRT_RETURN_IF_ERROR(loadStreams(stage, subnet, status));
  }
  BMRT_RETURN_IF_ERROR(loadKernels(subnet, status));
  BMRT_RETURN_IF_ERROR(resolveCustomOps(stage, subnet, status));
  return checkContracts(stage, subnet, status);
}

char *bmrt_model_t::constantAddress(const bmodel::TensorDef &tensor) const {
  if (tensor.chip() != bmodel::kHostMemory) {
    return constants.address(tensor);
  }
  // The pages are read-only; validateModel and checkContracts have ensured that no step writes there.
  return reinterpret_cast<char *>(const_cast<unsigned char *>(view.segment(tensor.place_index()) + tensor.offset()));
}

const bmodel::NetDef *bmrt_model_t::net(uint32_t index) const {
  return index < count(view.model->nets()) ? view.model->nets()->Get(index) : nullptr;
}

const StageProgram *bmrt_model_t::stage(uint32_t netIndex, uint32_t index) const {
  const bmodel::NetDef *wanted = net(netIndex);
  for (const StageProgram &stage : stages) {
    if (stage.net == wanted && stage.stageIndex == index) {
      return &stage;
    }
  }
  return nullptr;
}

bool bmrt_model_t::isFor(const StageProgram &stage, const char *chip) const {
  const bmodel::ChipDef &def = *view.model->chips()->Get(stage.def->chip());
  return def.name()->string_view() == chip || (def.family() && def.family()->string_view() == chip);
}

bmrt_code_t bmrt_model_t::findStage(const char *net, uint32_t index, const char *chip, const StageProgram **out,
                                    bmrt_status_t *status) const {
  const StageProgram *rejected = nullptr, *ofOtherChip = nullptr;
  bool netFound = false;
  for (const StageProgram &stage : stages) {
    if (net ? strcmp(net, stage.net->name()->c_str()) != 0 : stage.net != stages[0].net) {
      continue;
    }
    netFound = true;
    if (index != BMRT_FIRST_RUNNABLE_STAGE && index != stage.stageIndex) {
      continue;
    }
    if (chip && !isFor(stage, chip)) {
      ofOtherChip = ofOtherChip ? ofOtherChip : &stage;
      continue;
    }
    if (stage.rejection.code == BMRT_OK) {
      *out = &stage;
      return BMRT_OK;
    }
    rejected = rejected ? rejected : &stage;
  }
  if (rejected) {
    if (status) {
      *status = rejected->rejection;
    }
    return rejected->rejection.code;
  }
  if (!netFound) {
    return BMRT_FAIL(status, NOT_FOUND, "the model has no net '%.100s'; its first is '%.100s'", net,
                     stages[0].net->name()->c_str());
  }
  if (ofOtherChip) {
    return BMRT_FAIL(status, NOT_FOUND, "the net has no such stage for chip '%.60s'; the first is for '%.60s'", chip,
                     view.model->chips()->Get(ofOtherChip->def->chip())->name()->c_str());
  }
  return BMRT_FAIL(status, NOT_FOUND, "the net has no stage %" PRIu32, index);
}
