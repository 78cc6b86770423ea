// SPDX-License-Identifier: Apache-2.0
//===- StageContext.cpp - Memory and bindings of a stage ------------------===//
#include "StageContext.h"

#include "Context.h"
#include "TensorInfo.h"

#include <cinttypes>
#include <cstring>

using namespace bmrt::core;
using namespace bmodel;

namespace {

bool isAligned(const void *pointer) { return reinterpret_cast<uintptr_t>(pointer) % BMRT_ALIGNMENT == 0; }

uint64_t alignUp(uint64_t bytes) { return (bytes + BMRT_ALIGNMENT - 1) & ~uint64_t(BMRT_ALIGNMENT - 1); }

bool isSymbolic(const TensorDef &def) {
  for (uint32_t i = 0; i < count(def.shape()); ++i) {
    if (def.shape()->Get(i)->slot() >= 0) {
      return true;
    }
  }
  return false;
}

} // namespace

uint64_t bmrt::core::workspaceBytes(const StageDef &stage) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < count(stage.workspaces()); ++i) {
    const uint64_t bytes = stage.workspaces()->Get(i)->bytes();
    if (bytes > UINT64_MAX / 4 || __builtin_add_overflow(total, alignUp(bytes), &total)) {
      return UINT64_MAX;
    }
  }
  return total;
}

bmrt_code_t StageContext::create(const StageProgram &newProgram, bmrt_status_t *status) {
  program = &newProgram;
  stage = program->def;
  BMRT_RETURN_IF_ERROR(plan.build(*program, context.pool.threads(), status));
  if (!data.allocate(count(stage->tensors())) || !dims.allocate(count(stage->dims())) ||
      !state.allocate(stage->state_bytes()) || !workspaceData.allocate(count(stage->workspaces()))) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for %" PRIu32 " tensors", count(stage->tensors()));
  }
  for (uint32_t i = 0; i < dims.size(); ++i) {
    const DimSlotDef &def = *stage->dims()->Get(i);
    dims[i] = def.min() == def.max() ? def.min() : -1;
  }
  BMRT_RETURN_IF_ERROR(makePorts(status));
  BMRT_RETURN_IF_ERROR(makeRunners(status));
  BMRT_RETURN_IF_ERROR(context.reserveFor(*stage, plan.getScratchBytes(), status));
  enter();
  return resetState();
}

void StageContext::enter() {
  uint64_t used = 0;
  for (uint32_t i = 0; i < workspaceData.size(); ++i) {
    workspaceData[i] = context.workspace + used;
    used += alignUp(stage->workspaces()->Get(i)->bytes());
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
      ports[i].ownsPlace =
          ports[i].def->view_of() < 0 && ports[i].def->place() == Place::Caller && ports[i].def->role() == owner;
    }
    return true;
  };
  if (!make(stage->inputs(), inputs, TensorRole::Input) || !make(stage->outputs(), outputs, TensorRole::Output)) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for the inputs and outputs");
  }
  return BMRT_OK;
}

bmrt_code_t StageContext::makeRunners(bmrt_status_t *status) {
  size_t most = 0;
  for (const SubnetProgram &subnet : program->subnets) {
    for (const Stream &stream : subnet.streams) {
      most = stream.slots.size() > most ? stream.slots.size() : most;
    }
  }
  if (!runners.allocate(program->subnets.size()) || !streamIo.allocate(most)) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for %zu subnets", program->subnets.size());
  }
  for (uint32_t i = 0; i < runners.size(); ++i) {
    const SubnetProgram &subnet = program->subnets[i];
    if (subnet.streams.size()) {
      BMRT_RETURN_IF_ERROR(context.findRunner(subnet, &runners[i], status));
    }
  }
  return BMRT_OK;
}

bmrt_code_t bmrt::core::checkInputShape(const StageDef &stage, const TensorDef &input, const int64_t *shape,
                                        uint32_t rank, bmrt_status_t *status) {
  const char *name = input.name()->c_str();
  const uint32_t expectedRank = count(input.shape());
  if (rank != expectedRank || rank > BMRT_MAX_RANK) {
    return BMRT_FAIL(status, INVALID_ARGUMENT, "input '%.100s' has rank %" PRIu32 ", the given shape has rank %" PRIu32,
                     name, expectedRank, rank);
  }
  for (uint32_t i = 0; i < rank; ++i) {
    const Dim &dim = *input.shape()->Get(i);
    if (dim.slot() < 0) {
      if (shape[i] != dim.value()) {
        return BMRT_FAIL(status, INVALID_ARGUMENT,
                         "dimension %" PRIu32 " of input '%.100s' is %" PRId64 ", not %" PRId64, i, name, dim.value(),
                         shape[i]);
      }
      continue;
    }
    const DimSlotDef &slot = *stage.dims()->Get(uint32_t(dim.slot()));
    if (shape[i] < slot.min() || shape[i] > slot.max() || shape[i] > dim.value() || shape[i] % slot.divisor() != 0) {
      return BMRT_FAIL(status, INVALID_ARGUMENT,
                       "dimension %" PRIu32 " ('%.60s') of input '%.100s' is %" PRId64
                       ", allowed are multiples of %" PRId64 " from %" PRId64 " to %" PRId64,
                       i, slot.name()->c_str(), name, shape[i], slot.divisor(), slot.min(),
                       slot.max() < dim.value() ? slot.max() : dim.value());
    }
  }
  return BMRT_OK;
}

/// Whether dim |at| of |input| has the size that inputs before it give to its symbol.
static bmrt_code_t checkSymbol(const StageDef &stage, const InputShapes &shapes, uint32_t input, uint32_t at,
                               bmrt_status_t *status) {
  const TensorDef &def = *stage.tensors()->Get(stage.inputs()->Get(input));
  const int32_t slot = def.shape()->Get(at)->slot();
  for (uint32_t i = 0; slot >= 0 && i <= input; ++i) {
    const TensorDef &other = *stage.tensors()->Get(stage.inputs()->Get(i));
    for (uint32_t k = 0; shapes.dims[i] && k < count(other.shape()); ++k) {
      if (other.shape()->Get(k)->slot() == slot && shapes.dims[i][k] != shapes.dims[input][at]) {
        return BMRT_FAIL(status, INVALID_ARGUMENT,
                         "dimension %" PRIu32 " ('%.60s') of input '%.100s' is %" PRId64
                         ", that of input '%.100s' is %" PRId64,
                         at, stage.dims()->Get(uint32_t(slot))->name()->c_str(), def.name()->c_str(),
                         shapes.dims[input][at], other.name()->c_str(), shapes.dims[i][k]);
      }
    }
  }
  return BMRT_OK;
}

bmrt_code_t bmrt::core::checkInputShapes(const StageDef &stage, const InputShapes &shapes, bmrt_status_t *status) {
  for (uint32_t i = 0; i < count(stage.inputs()); ++i) {
    if (shapes.dims[i]) {
      const TensorDef &input = *stage.tensors()->Get(stage.inputs()->Get(i));
      BMRT_RETURN_IF_ERROR(checkInputShape(stage, input, shapes.dims[i], shapes.ranks[i], status));
      for (uint32_t k = 0; k < shapes.ranks[i]; ++k) {
        BMRT_RETURN_IF_ERROR(checkSymbol(stage, shapes, i, k, status));
      }
    }
  }
  return BMRT_OK;
}

bmrt_code_t StageContext::setInputShape(Port &input, const int64_t *shape, uint32_t rank, bmrt_status_t *status) {
  BMRT_RETURN_IF_ERROR(checkInputShape(*stage, *input.def, shape, rank, status));
  bool changed = false;
  for (uint32_t i = 0; i < rank; ++i) {
    const Dim &dim = *input.def->shape()->Get(i);
    if (dim.slot() >= 0) {
      changed |= dims[size_t(dim.slot())] != shape[i];
      dims[size_t(dim.slot())] = shape[i];
    }
  }
  // Buffers bound for other sizes would be read beyond their end.
  for (Port &port : inputs) {
    if (changed && isSymbolic(*port.def)) {
      port.bound = nullptr;
      addressesCurrent = false;
    }
  }
  return BMRT_OK;
}

bmrt_code_t StageContext::setInputShapes(const InputShapes &shapes, bmrt_status_t *status) {
  BMRT_RETURN_IF_ERROR(checkInputShapes(*stage, shapes, status));
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    if (shapes.dims[i]) {
      BMRT_RETURN_IF_ERROR(setInputShape(inputs[i], shapes.dims[i], shapes.ranks[i], status));
    }
  }
  return BMRT_OK;
}

bmrt_code_t StageContext::bind(Port &port, void *pointer, uint64_t bytes, uint64_t expected, bmrt_status_t *status) {
  if (pointer && bytes != expected) {
    return BMRT_FAIL(status, INVALID_ARGUMENT, "buffer for tensor '%.100s' has %" PRIu64 " bytes, needs %" PRIu64,
                     port.def->name()->c_str(), bytes, expected);
  }
  addressesCurrent &= port.bound == pointer;
  port.bound = static_cast<char *>(pointer);
  return BMRT_OK;
}

bmrt_code_t StageContext::ensureOwn(Port &port, bmrt_status_t *status) {
  if (!port.hasOwn) {
    if (!port.own.allocate(port.def->bytes())) {
      return BMRT_FAIL(status, NO_MEMORY, "no memory for tensor '%.100s' of %" PRIu64 " bytes",
                       port.def->name()->c_str(), port.def->bytes());
    }
    port.hasOwn = true;
    addressesCurrent = false;
  }
  return BMRT_OK;
}

/// Gives every slot its address: what the model places, and what is bound.
void StageContext::placeTensors() {
  for (uint32_t i = 0; i < data.size(); ++i) {
    const TensorDef &def = *stage->tensors()->Get(i);
    if (def.view_of() >= 0) {
      continue; // below, where its root is known
    }
    switch (def.place()) {
    case Place::Workspace:
      data[i] = workspaceData[def.place_index()] + def.offset();
      break;
    case Place::Segment:
      // Read-only pages; validateModel and checkContracts have seen that no step writes there.
      data[i] = reinterpret_cast<char *>(
          const_cast<unsigned char *>(context.getModel().view.segment(def.place_index()) + def.offset()));
      break;
    case Place::State:
      data[i] = state.data() + def.offset();
      break;
    case Place::Caller:
      break;
    }
  }
  for (Array<Port> *ports : {&inputs, &outputs}) {
    for (Port &port : *ports) {
      if (port.ownsPlace) {
        data[port.slot] = port.bound && isAligned(port.bound) ? port.bound : port.own.data();
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
      if (port.ownsPlace && !(port.bound && isAligned(port.bound))) {
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

bmrt_code_t StageContext::copyInputs(bmrt_status_t *status) {
  for (Port &port : inputs) {
    for (uint32_t i = 0; i < count(port.def->shape()); ++i) {
      const Dim &dim = *port.def->shape()->Get(i);
      if (dim.slot() >= 0 && dims[size_t(dim.slot())] < 0) {
        return BMRT_FAIL(status, FAILED_PRECONDITION,
                         "dimension %" PRIu32 " ('%.60s') of input '%.100s' is not known: call "
                         "bmrt_context_set_input_shape first",
                         i, stage->dims()->Get(uint32_t(dim.slot()))->name()->c_str(), port.def->name()->c_str());
      }
    }
    if (port.bound && port.bound != data[port.slot]) {
      memcpy(data[port.slot], port.bound, currentBytes(*port.def, dims.data()));
    }
  }
  return BMRT_OK;
}

void StageContext::copyOutputs() {
  for (Port &port : outputs) {
    if (port.bound && port.bound != data[port.slot]) {
      memcpy(port.bound, data[port.slot], currentBytes(*port.def, dims.data()));
    }
  }
}

bmrt_code_t StageContext::resetState() {
  // Fresh memory is zero; tensors alone are cleared, so that the rest is never touched.
  for (uint32_t i = 0; i < data.size(); ++i) {
    const TensorDef &def = *stage->tensors()->Get(i);
    if (def.place() != Place::State || def.view_of() >= 0) {
      continue;
    }
    if (def.initial() >= 0) {
      memcpy(data[i], data[uint32_t(def.initial())], def.bytes());
    } else if (!stateIsFresh) {
      memset(data[i], 0, def.bytes());
    }
  }
  stateIsFresh = true;
  return BMRT_OK;
}

bmrt_code_t StageContext::run(bmrt_status_t *status) {
  BMRT_RETURN_IF_ERROR(resolveAddresses(status));
  BMRT_RETURN_IF_ERROR(copyInputs(status));
  stateIsFresh = false;
  profile.beginRun();
  {
    const FloatModeScope floatMode;
    BMRT_RETURN_IF_ERROR(runSubnet(0, status));
  }
  copyOutputs();
  return BMRT_OK;
}

bmrt_code_t StageContext::runSteps(uint32_t begin, uint32_t end, bmrt_status_t *status) {
  const uint32_t steps = plan.end(0);
  if (begin > end || end > steps) {
    return BMRT_FAIL(status, INVALID_ARGUMENT, "steps %" PRIu32 " to %" PRIu32 " are no part of the net's %" PRIu32,
                     begin, end, steps);
  }
  if (!addressesCurrent) {
    return BMRT_FAIL(status, FAILED_PRECONDITION, "the context has not run since its buffers were bound");
  }
  stateIsFresh = false;
  {
    const FloatModeScope floatMode;
    BMRT_RETURN_IF_ERROR(runRange(begin, end, status));
  }
  copyOutputs();
  return BMRT_OK;
}
