// SPDX-License-Identifier: Apache-2.0
//===- StageContext.cpp - Memory and bindings of a stage ------------------===//
#include "StageContext.h"

#include "Count.h"
#include "TensorInfo.h"

#include <cinttypes>
#include <cstring>

using namespace bmrt::core;
using namespace bmodel;

namespace {

bool isSymbolic(const TensorDef &def) {
  for (uint32_t i = 0; i < count(def.shape()); ++i) {
    if (def.shape()->Get(i)->slot() >= 0) {
      return true;
    }
  }
  return false;
}

} // namespace

bool Port::isUsedInPlace() const {
  return ownsPlace && bound && (isOnChip || reinterpret_cast<uintptr_t>(bound) % alignment == 0);
}

bmrt_code_t StageContext::create(const StageProgram &newProgram, bmrt_status_t *status) {
  program = &newProgram;
  stage = program->def;
  BMRT_RETURN_IF_ERROR(plan.build(*program, resources.pool.threads(), status));
  if (!data.allocate(count(stage->tensors())) || !isOnChip.allocate(count(stage->tensors())) ||
      !workspaceData.allocate(count(stage->workspaces())) || !workspaceUsed.allocate(program->devices.size() + 1)) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for %" PRIu32 " tensors", count(stage->tensors()));
  }
  BMRT_RETURN_IF_ERROR(sizes.create(*program, status));
  BMRT_RETURN_IF_ERROR(makePorts(status));
  BMRT_RETURN_IF_ERROR(allocateState(status));
  BMRT_RETURN_IF_ERROR(resources.reserveFor(*program, plan.getScratchBytes(), status));
  BMRT_RETURN_IF_ERROR(resources.getModel().placeConstants(*program, status));
  onlyAgent = findOnlyAgent();
  enter();
  return resetState(status);
}

void StageContext::enter() {
  for (uint64_t &used : workspaceUsed) {
    used = 0;
  }
  for (uint32_t i = 0; i < workspaceData.size(); ++i) {
    const WorkspaceDef &workspace = *stage->workspaces()->Get(i);
    const int32_t memory = memoryOf(workspace);
    uint64_t &used = workspaceUsed[size_t(memory + 1)];
    workspaceData[i] = resources.workspaceOf(memory) + used;
    used += alignedBytes(workspace.bytes());
  }
  addressesCurrent = false;
  placeTensors();
}

bmrt_code_t StageContext::makePorts(bmrt_status_t *status) {
  auto make = [&](const flatbuffers::Vector<uint32_t> *slots, Array<Port> &ports, TensorRole owner) {
    if (!ports.allocate(count(slots))) {
      return false;
    }
    for (uint32_t i = 0; i < ports.size(); ++i) {
      ports[i].slot = slots->Get(i);
      ports[i].def = stage->tensors()->Get(ports[i].slot);
      ports[i].isInput = owner == TensorRole::Input;
      ports[i].ownsPlace =
          ports[i].def->view_of() < 0 && ports[i].def->place() == Place::Caller && ports[i].def->role() == owner;
      ports[i].alignment = program->alignments[ports[i].slot];
    }
    return true;
  };
  if (!make(stage->inputs(), inputs, TensorRole::Input) || !make(stage->outputs(), outputs, TensorRole::Output)) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for the inputs and outputs");
  }
  return BMRT_OK;
}

bmrt_code_t StageContext::setInputShapes(const InputShapes &shapes, bmrt_status_t *status) {
  bool changed = false;
  BMRT_RETURN_IF_ERROR(sizes.set(shapes, changed, status));
  if (changed) {
    unbindChanged();
  }
  return BMRT_OK;
}

/// Unbinds buffers bound for other sizes, beyond whose end a run would read or write. A buffer for an output's largest
/// size fits all sizes.
void StageContext::unbindChanged() {
  bool isUnbound = false;
  for (Array<Port> *ports : {&inputs, &outputs}) {
    for (Port &port : *ports) {
      if (port.bound && isSymbolic(*port.def) && (port.isInput || port.boundBytes != port.def->bytes())) {
        port.bound = nullptr;
        port.isOnChip = false;
        isUnbound = true;
      }
    }
  }
  if (isUnbound) {
    addressesCurrent = false;
    placeTensors(); // nobody may look into such a buffer with the new sizes
  }
}

bmrt_code_t StageContext::bind(Port &port, void *pointer, uint64_t bytes, bmrt_status_t *status) {
  const uint64_t expected = sizes.boundBytesOf(port.slot);
  if (pointer && bytes != expected && (port.isInput || bytes != port.def->bytes())) {
    return BMRT_FAIL(status, INVALID_ARGUMENT, "buffer for tensor '%.100s' has %" PRIu64 " bytes, needs %" PRIu64,
                     port.def->name()->c_str(), bytes, expected);
  }
  addressesCurrent &= port.bound == pointer && !port.isOnChip;
  port.bound = static_cast<char *>(pointer);
  port.boundBytes = bytes;
  port.isOnChip = false;
  return BMRT_OK;
}

bmrt_code_t StageContext::ensureOwn(Port &port, bmrt_status_t *status) {
  if (!port.hasOwn) {
    if (!port.own.allocate(port.def->bytes(), /*isSparse=*/isSymbolic(*port.def))) {
      return BMRT_FAIL(status, NO_MEMORY, "no memory for tensor '%.100s' of %" PRIu64 " bytes",
                       port.def->name()->c_str(), port.def->bytes());
    }
    port.hasOwn = true;
    addressesCurrent = false;
  }
  return BMRT_OK;
}

/// Sets the address of every slot: tensors placed by the model, and bound buffers.
void StageContext::placeTensors() {
  for (uint32_t i = 0; i < data.size(); ++i) {
    const TensorDef &def = *stage->tensors()->Get(i);
    if (def.view_of() >= 0) {
      continue; // set below, once the address of its root is known
    }
    switch (def.place()) {
    case Place::Workspace:
      data[i] = workspaceData[def.place_index()] + def.offset();
      break;
    case Place::Segment:
      data[i] = resources.getModel().constantAddress(def);
      break;
    case Place::State:
      data[i] = (def.chip() == kHostMemory ? state.data() : chipStates[size_t(def.chip())].address()) + def.offset();
      break;
    case Place::Caller:
      break;
    }
  }
  for (Array<Port> *ports : {&inputs, &outputs}) {
    for (Port &port : *ports) {
      if (port.ownsPlace) {
        data[port.slot] = port.isUsedInPlace() ? port.bound : port.own.data();
        isOnChip[port.slot] = port.isOnChip;
      }
      if (port.isOnChip && port.twin >= 0) {
        data[size_t(port.twin)] = port.bound;
      }
    }
  }
  for (uint32_t i = 0; i < data.size(); ++i) {
    const TensorDef &def = *stage->tensors()->Get(i);
    if (def.view_of() >= 0) {
      char *root = data[uint32_t(def.view_of())];
      data[i] = root ? root + def.offset() : nullptr;
    }
  }
}

bmrt_code_t StageContext::resolveAddresses(bmrt_status_t *status) {
  for (Array<Port> *ports : {&inputs, &outputs}) {
    for (Port &port : *ports) {
      if (port.ownsPlace && !port.isUsedInPlace()) {
        BMRT_RETURN_IF_ERROR(ensureOwn(port, status));
      }
    }
  }
  if (!addressesCurrent) {
    placeTensors();
    plan.bind(data.data());
    addressesCurrent = true;
  }
  return BMRT_OK;
}

void StageContext::copyInputs() {
  for (Port &port : inputs) {
    if (port.bound && port.bound != data[port.slot]) {
      memcpy(data[port.slot], port.bound, sizes.bytesOf(port.slot));
    }
  }
}

void StageContext::copyOutputs() {
  for (Port &port : outputs) {
    if (port.bound && port.bound != data[port.slot]) {
      memcpy(port.bound, data[port.slot], sizes.bytesOf(port.slot));
    }
  }
}

/// Returns the bytes in the file of a constant or of a view of one, even if a chip has a copy.
const char *StageContext::fileBytes(uint32_t constant) const {
  const TensorDef &def = tensor(constant);
  const TensorDef &root = def.view_of() < 0 ? def : tensor(uint32_t(def.view_of()));
  const uint64_t offset = root.offset() + (&root == &def ? 0 : def.offset());
  return reinterpret_cast<const char *>(resources.getModel().view.segment(root.place_index()) + offset);
}

bmrt_code_t StageContext::fetchTensor(uint32_t slot, char *bytes, bmrt_status_t *status) {
  Queue &queue = resources.queueOf(uint32_t(memoryOf(*stage, tensor(slot)) + 1));
  BMRT_RETURN_IF_ERROR(queue.copy(BMRT_COPY_FROM_CHIP, bytes, data[slot], sizes.bytesOf(slot), status));
  return queue.wait(nullptr, status);
}

bmrt_code_t StageContext::storeTensor(uint32_t slot, const char *bytes, bmrt_status_t *status) {
  Queue &queue = resources.queueOf(uint32_t(memoryOf(*stage, tensor(slot)) + 1));
  BMRT_RETURN_IF_ERROR(queue.copy(BMRT_COPY_TO_CHIP, data[slot], bytes, sizes.bytesOf(slot), status));
  return queue.wait(nullptr, status);
}

bmrt_code_t StageContext::look(uint32_t slot, bool isKept, void **out, bmrt_status_t *status) {
  if (!data[slot]) {
    return BMRT_FAIL(status, FAILED_PRECONDITION, "the context has not run");
  }
  if (isOnChip[slot]) {
    return BMRT_FAIL(status, FAILED_PRECONDITION, "tensor '%.100s' is in the caller's chip memory",
                     tensor(slot).name()->c_str());
  }
  char *bytes = data[slot];
  if (memoryOf(*stage, tensor(slot)) != kHostMemory) {
    BMRT_RETURN_IF_ERROR(mirrors.look(*this, slot, isKept, &bytes, status));
  }
  *out = bytes;
  return BMRT_OK;
}

/// Checks that the bound outputs have the sizes that follow from new lengths of states. Unbinds one that does not.
bmrt_code_t StageContext::checkOutputs(bmrt_status_t *status) {
  for (Port &port : outputs) {
    if (port.bound && port.boundBytes != port.def->bytes() && port.boundBytes != sizes.boundBytesOf(port.slot)) {
      port.bound = nullptr;
      port.isOnChip = addressesCurrent = false;
      return BMRT_FAIL(status, FAILED_PRECONDITION,
                       "the buffer bound to output '%.100s' has %" PRIu64
                       " bytes, after the last run it needs %" PRIu64,
                       port.def->name()->c_str(), port.boundBytes, sizes.boundBytesOf(port.slot));
    }
  }
  return BMRT_OK;
}

bmrt_code_t StageContext::beginRun(bmrt_status_t *status) {
  bool changed = false;
  BMRT_RETURN_IF_ERROR(sizes.beginRun(changed, status));
  if (changed) {
    BMRT_RETURN_IF_ERROR(checkOutputs(status));
  }
  BMRT_RETURN_IF_ERROR(resolveAddresses(status));
  copyInputs();
  stateIsFresh = false;
  return BMRT_OK;
}

bmrt_code_t StageContext::run(bmrt_status_t *status) {
  BMRT_RETURN_IF_ERROR(beginRun(status));
  profile.beginRun();
  {
    const FloatModeScope floatMode;
    Lane lane(kHostAgent, /*isCaller=*/true);
    // Hooks observe steps in plan order, so run the steps in that order.
    BMRT_RETURN_IF_ERROR(program->schedule.isEmpty() || resources.hook.function
                             ? runAndWait(lane, plan.begin(0), plan.end(0), status)
                             : resources.tasks.run(*this, program->schedule, resources.interrupt, status));
  }
  BMRT_RETURN_IF_ERROR(mirrors.fetch(*this, status));
  copyOutputs();
  sizes.endRun();
  return BMRT_OK;
}

uint32_t StageContext::findOnlyAgent() const {
  uint32_t found = kHostAgent;
  for (const Step &step : plan.getSteps()) {
    if (step.agent == kHostAgent || (step.agent != kNoAgent && found != kHostAgent && step.agent != found)) {
      return kHostAgent;
    }
    found = step.agent == kNoAgent ? found : step.agent;
  }
  const bool worksByItself =
      found != kHostAgent && (program->devices[found - 1]->backend->flags & BMRT_BACKEND_RETURNS_EARLY);
  return worksByItself ? found : uint32_t(kHostAgent);
}

bool StageContext::isEnqueued() const {
  return onlyAgent != kHostAgent && !profile.isEnabled() && !resources.hook.function;
}

bmrt_code_t StageContext::enqueue(bmrt_status_t *status) {
  BMRT_RETURN_IF_ERROR(beginRun(status));
  const bmrt_code_t code = runRange(enqueued, plan.begin(0), plan.end(0), status);
  if (code != BMRT_OK && enqueued.pending != kHostAgent) {
    (void)drain(enqueued, nullptr); // the caller may free memory that is still in use
  }
  return code;
}

bmrt_code_t StageContext::finish(bmrt_status_t *status) {
  if (enqueued.pending != kHostAgent) {
    BMRT_RETURN_IF_ERROR(drain(enqueued, status));
  }
  BMRT_RETURN_IF_ERROR(mirrors.fetch(*this, status));
  copyOutputs();
  sizes.endRun();
  return BMRT_OK;
}

bool StageContext::isFinished() const {
  return enqueued.pending == kHostAgent || resources.queueOf(enqueued.pending).isDone();
}

bmrt_code_t StageContext::runSteps(uint32_t begin, uint32_t end, bmrt_status_t *status) {
  const uint32_t steps = plan.end(0);
  end = end == UINT32_MAX ? steps : end;
  if (begin > end || end > steps) {
    return BMRT_FAIL(status, INVALID_ARGUMENT, "steps %" PRIu32 " to %" PRIu32 " are not part of the net's %" PRIu32,
                     begin, end, steps);
  }
  if (!addressesCurrent) {
    return BMRT_FAIL(status, FAILED_PRECONDITION, "the context has not run since its buffers were bound");
  }
  stateIsFresh = false;
  BMRT_RETURN_IF_ERROR(mirrors.store(*this, status));
  {
    const FloatModeScope floatMode;
    Lane lane(kHostAgent, /*isCaller=*/true);
    BMRT_RETURN_IF_ERROR(runAndWait(lane, begin, end, status));
  }
  BMRT_RETURN_IF_ERROR(mirrors.fetch(*this, status));
  copyOutputs();
  return BMRT_OK;
}
