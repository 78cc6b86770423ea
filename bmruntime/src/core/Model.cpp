// SPDX-License-Identifier: Apache-2.0
//===- Model.cpp - An opened .bmodel --------------------------------------===//
#include "Model.h"

#include "Integrity.h"

#include <cinttypes>
#include <cstring>

using namespace bmrt::core;

namespace {

template <typename T>
uint32_t count(const flatbuffers::Vector<T> *vector) {
  return vector ? vector->size() : 0;
}

} // namespace

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
  const uint32_t inputs = count(stage.def->inputs()), outputs = count(stage.def->outputs());
  if (!stage.subnets.allocate(subnets) || !stage.ioBytes.allocate(size_t(inputs) + outputs)) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for %" PRIu32 " subnets", subnets);
  }
  for (uint32_t i = 0; i < stage.ioBytes.size(); ++i) {
    const uint32_t slot = i < inputs ? stage.def->inputs()->Get(i) : stage.def->outputs()->Get(i - inputs);
    stage.ioBytes[i] = stage.def->tensors()->Get(slot)->bytes();
  }
  for (uint32_t i = 0; i < subnets; ++i) {
    stage.subnets[i].def = stage.def->subnets()->Get(i);
    BMRT_RETURN_IF_ERROR(loadSubnet(stage, stage.subnets[i], status));
  }
  return BMRT_OK;
}

/// The constants of streams are the file's first segment of them, their workspace the stage's first.
void bmrt_model_t::describeStreams(const StageProgram &stage, SubnetProgram &subnet) const {
  StreamProgram &streams = subnet.streams;
  streams.chip = view.model->chips()->Get(subnet.def->chip());
  streams.subnet = subnet.def;
  streams.code = view.segment(uint32_t(subnet.def->code_segment()));
  for (uint32_t i = 0; i < count(view.model->segments()) && !streams.memory.constants; ++i) {
    const bmodel::SegmentDef &segment = *view.model->segments()->Get(i);
    if (segment.kind() == bmodel::SegmentKind::Constants) {
      streams.memory.constants = view.segment(i);
      streams.memory.constantBytes = segment.bytes();
    }
  }
  streams.memory.workspaceBytes = count(stage.def->workspaces()) ? stage.def->workspaces()->Get(0)->bytes() : 0;
  streams.memory.ioBytes = stage.ioBytes.data();
  streams.memory.ioCount = uint32_t(stage.ioBytes.size());
  streams.memory.inputs = count(stage.def->inputs());
}

bmrt_code_t bmrt_model_t::loadSubnet(StageProgram &stage, SubnetProgram &subnet, bmrt_status_t *status) {
  const bmodel::SubnetDef &def = *subnet.def;
  if (def.kind() == bmodel::SubnetKind::Control) {
    return BMRT_OK;
  }
  const Backend *backend = findBackend(def.kind());
  if (!backend) {
    return BMRT_FAIL(status, UNSUPPORTED, "subnet '%.60s' is for kind %s, which this runtime was built without",
                     def.name()->c_str(), EnumNameSubnetKind(def.kind()));
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
    describeStreams(stage, subnet);
    BMRT_RETURN_IF_ERROR(backend->verify(subnet.streams, status));
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
  return BMRT_OK;
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

bmrt_code_t bmrt_model_t::findStage(const char *net, uint32_t index, const StageProgram **out,
                                    bmrt_status_t *status) const {
  const StageProgram *refused = nullptr;
  bool netFound = false;
  for (const StageProgram &stage : stages) {
    if (net ? strcmp(net, stage.net->name()->c_str()) != 0 : stage.net != stages[0].net) {
      continue;
    }
    netFound = true;
    if (index != BMRT_FIRST_RUNNABLE_STAGE && index != stage.stageIndex) {
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
  return BMRT_FAIL(status, NOT_FOUND, "the net has no stage %" PRIu32, index);
}
