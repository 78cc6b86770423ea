// SPDX-License-Identifier: Apache-2.0
//===- Model.cpp - An opened .bmodel --------------------------------------===//
#include "Model.h"

#include "Contract.h"
#include "Integrity.h"

#include <cinttypes>
#include <cstring>

using namespace bmrt::core;

bmrt_model_t::~bmrt_model_t() {
  for (CodeImage *image : images) {
    if (image) {
      image->destroy();
    }
  }
}

bmrt_code_t bmrt_model_t::open(MappedFile mapped, const char *name, bool trustConstants, bmrt_status_t *status) {
  file = std::move(mapped);
  bmodel::Status cause;
  if (!bmodel::openModel(file.data(), file.bytes(), view, cause) || !checkIntegrity(view, trustConstants, cause)) {
    return fail(status, cause, name);
  }
  return loadStages(name, status);
}

bmrt_code_t bmrt_model_t::loadStages(const char *name, bmrt_status_t *status) {
  uint32_t total = 0;
  for (const bmodel::NetDef *net : *view.model->nets()) {
    total += count(net->stages());
  }
  if (!stages.allocate(total) || !images.allocate(count(view.model->segments()))) {
    return BMRT_FAIL(status, NO_MEMORY, "failed to load '%.200s': no memory", name);
  }
  StageProgram *next = stages.begin();
  const StageProgram *refused = nullptr;
  bool runnable = false;
  for (const bmodel::NetDef *net : *view.model->nets()) {
    for (uint32_t i = 0; i < count(net->stages()); ++i, ++next) {
      next->net = net;
      next->def = net->stages()->Get(i);
      next->stageIndex = i;
      const bmrt_code_t code = loadStage(*next, &next->refusal);
      // A stage for another machine stays, marked; anything else condemns the file.
      if (code != BMRT_OK && code != BMRT_UNSUPPORTED) {
        return fail(status, code, next->refusal.file, next->refusal.line,
                    "failed to load '%.120s': net '%.40s' stage %" PRIu32 ": %.280s", name, net->name()->c_str(), i,
                    next->refusal.message);
      }
      runnable |= code == BMRT_OK;
      refused = code == BMRT_OK ? refused : next;
    }
  }
  if (!runnable) {
    return fail(status, BMRT_UNSUPPORTED, refused->refusal.file, refused->refusal.line,
                "failed to load '%.120s': %.340s", name, refused->refusal.message);
  }
  return BMRT_OK;
}

bmrt_code_t bmrt_model_t::loadStage(StageProgram &stage, bmrt_status_t *status) {
  const uint32_t subnets = count(stage.def->subnets());
  if (!stage.subnets.allocate(subnets)) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for %" PRIu32 " subnets", subnets);
  }
  for (uint32_t i = 0; i < subnets; ++i) {
    stage.subnets[i].def = stage.def->subnets()->Get(i);
    BMRT_RETURN_IF_ERROR(loadSubnet(stage, stage.subnets[i], status));
  }
  return BMRT_OK;
}

/// The constants of streams are the file's first segment of them, their workspace the stage's first. False without
/// memory.
bool bmrt_model_t::describeStream(const bmodel::StageDef &stage, const bmodel::SubnetDef &subnet,
                                  const bmodel::StepDef &step, Stream &stream) const {
  bmodel::StreamCall call;
  bmodel::findStreamCall(stage, step, call);
  const uint32_t inputs = count(call.inputs), total = inputs + count(call.outputs);
  if (!stream.slots.allocate(total) || !stream.ioBytes.allocate(total)) {
    return false;
  }
  for (uint32_t i = 0; i < total; ++i) {
    stream.slots[i] = i < inputs ? call.inputs->Get(i) : call.outputs->Get(i - inputs);
    stream.ioBytes[i] = stage.tensors()->Get(stream.slots[i])->bytes();
  }
  StreamRun &run = stream.run;
  run.step = &step;
  run.code = view.segment(uint32_t(subnet.code_segment()));
  run.offset = call.offset;
  run.bytes = call.bytes;
  for (uint32_t i = 0; i < count(view.model->segments()) && !run.constants; ++i) {
    const bmodel::SegmentDef &segment = *view.model->segments()->Get(i);
    if (segment.kind() == bmodel::SegmentKind::Constants) {
      run.constants = view.segment(i);
      run.constantBytes = segment.bytes();
    }
  }
  run.workspaceBytes = count(stage.workspaces()) ? stage.workspaces()->Get(0)->bytes() : 0;
  run.ioBytes = stream.ioBytes.data();
  run.ioCount = total;
  run.inputs = inputs;
  return true;
}

bmrt_code_t bmrt_model_t::loadStreams(const StageProgram &stage, SubnetProgram &subnet, bmrt_status_t *status) const {
  const bmodel::SubnetDef &def = *subnet.def;
  subnet.target.chip = view.model->chips()->Get(def.chip());
  subnet.target.subnet = &def;
  bmodel::StreamCall call;
  uint32_t total = 0, next = 0;
  for (uint32_t i = 0; i < count(def.plan()); ++i) {
    total += bmodel::findStreamCall(*stage.def, *def.plan()->Get(i), call);
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
    BMRT_RETURN_IF_ERROR(subnet.backend->verify(subnet.target, stream.run, status));
  }
  return BMRT_OK;
}

bmrt_code_t bmrt_model_t::loadSubnet(StageProgram &stage, SubnetProgram &subnet, bmrt_status_t *status) {
  const bmodel::SubnetDef &def = *subnet.def;
  if (def.kind() == bmodel::SubnetKind::Control) {
    return BMRT_OK;
  }
  const Backend *backend = nullptr;
  bmrt_status_t cause;
  if (bmrt_code_t code = findBackend(def.kind(), &backend, &cause); code != BMRT_OK) {
    return fail(status, code, cause.file, cause.line, "subnet '%.60s': %.400s", def.name()->c_str(), cause.message);
  }
  subnet.backend = backend;
  BMRT_RETURN_IF_ERROR(backend->check(def, status));
  if (def.code_segment() < 0) {
    return BMRT_OK;
  }
  const uint32_t segment = uint32_t(def.code_segment());
  if (!images[segment]) {
    BMRT_RETURN_IF_ERROR(
        backend->load(view.segment(segment), view.model->segments()->Get(segment)->bytes(), &images[segment], status));
  }
  if (backend->verify) {
    BMRT_RETURN_IF_ERROR(loadStreams(stage, subnet, status));
  }
  if (!subnet.kernels.allocate(count(def.kernels()))) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for %" PRIu32 " kernels", count(def.kernels()));
  }
  for (uint32_t i = 0; i < subnet.kernels.size(); ++i) {
    const char *symbol = def.kernels()->Get(i)->symbol()->c_str();
    subnet.kernels[i] = images[segment]->findKernel(symbol);
    if (!subnet.kernels[i]) {
      return BMRT_FAIL(status, CORRUPT, "kernel '%.80s' of subnet '%.60s' is not in its code", symbol,
                       def.name()->c_str());
    }
  }
  return checkContracts(*stage.def, def, *images[segment], status);
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
  const StageProgram *refused = nullptr, *ofOtherChip = nullptr;
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
    if (stage.refusal.code == BMRT_OK) {
      *out = &stage;
      return BMRT_OK;
    }
    refused = refused ? refused : &stage;
  }
  if (refused) {
    if (status) {
      *status = refused->refusal;
    }
    return refused->refusal.code;
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
