// SPDX-License-Identifier: Apache-2.0
//===- ChipPorts.cpp - Inputs and outputs in the caller's memory of a chip -===//
//
// Inputs and outputs of a net are in the host's memory; steps copy them to and from the memory of chips. If such a copy
// is the only use of an input or output, the caller may provide it in the chip's memory. The copy then runs on the
// chip, or is omitted if the chip's tensor can use the caller's buffer directly.
//
//===----------------------------------------------------------------------===//
#include "Count.h"
#include "StageContext.h"

#include <cinttypes>

using namespace bmrt::core;
using namespace bmodel;

namespace {

/// Calls |use| with each tensor that a step of the stage accesses, and whether the step may write it.
template <typename Use>
void forTouched(const StageDef &stage, const StepDef &step, Use use) {
  StreamCall call;
  if (const CopyDef *copy = step.op_as_CopyDef()) {
    use(copy->from(), false);
    use(copy->to(), true);
  } else if (const LaunchDef *launch = step.op_as_LaunchDef()) {
    for (uint32_t i = 0; i < count(launch->args()); ++i) {
      use(launch->args()->Get(i), true);
    }
  } else if (const BranchDef *branch = step.op_as_BranchDef()) {
    use(branch->condition(), false);
  } else if (const LoopDef *loop = step.op_as_LoopDef()) {
    for (int32_t slot : {loop->trip_count(), loop->condition(), loop->iteration()}) {
      if (slot >= 0) {
        use(uint32_t(slot), true);
      }
    }
  } else if (const ReadDimDef *read = step.op_as_ReadDimDef()) {
    use(read->from(), false);
  } else if (const WriteDimDef *write = step.op_as_WriteDimDef()) {
    use(write->to(), true);
  } else if (findStreamCall(stage, step, call)) {
    for (uint32_t i = 0; i < count(call.inputs); ++i) {
      use(call.inputs->Get(i), false);
    }
    for (uint32_t i = 0; i < count(call.outputs); ++i) {
      use(call.outputs->Get(i), true);
    }
  }
}

/// The accesses to a tensor or its views in a stage.
struct Uses {
  uint32_t touches = 0, writes = 0;
  const CopyDef *copy = nullptr; ///< the last access that is a copy
};

Uses usesOf(const StageDef &stage, uint32_t root) {
  Uses uses;
  for (const SubnetDef *subnet : *stage.subnets()) {
    for (uint32_t i = 0; i < count(subnet->plan()); ++i) {
      const StepDef &step = *subnet->plan()->Get(i);
      forTouched(stage, step, [&](uint32_t slot, bool isWrite) {
        const int32_t viewed = stage.tensors()->Get(slot)->view_of();
        if ((viewed < 0 ? slot : uint32_t(viewed)) == root) {
          ++uses.touches;
          uses.writes += isWrite;
          uses.copy = step.op_as_CopyDef() ? step.op_as_CopyDef() : uses.copy;
        }
      });
    }
  }
  return uses;
}

} // namespace

/// Returns the copy step of a port whose only use is a copy of the whole tensor to or from a chip; null for other
/// ports.
static const CopyDef *copyOf(const StageDef &stage, const Port &port) {
  const Uses uses = usesOf(stage, port.slot);
  if (!port.ownsPlace || uses.touches != 1 || !uses.copy) {
    return nullptr;
  }
  const bool isInput = port.def->role() == TensorRole::Input;
  const uint32_t mine = isInput ? uses.copy->from() : uses.copy->to();
  return mine == port.slot && chipOfCopy(stage, *uses.copy) != kHostMemory ? uses.copy : nullptr;
}

bmrt_code_t StageContext::bindOnChip(Port &port, void *pointer, uint64_t bytes, bmrt_status_t *status) {
  if (!pointer) {
    return bind(port, nullptr, 0, status);
  }
  const CopyDef *copied = copyOf(*stage, port);
  if (!copied) {
    return BMRT_FAIL(status, UNSUPPORTED,
                     "tensor '%.100s' is used by the host, or by several steps, and cannot be in a chip's memory: bind "
                     "host memory",
                     port.def->name()->c_str());
  }
  const uint64_t needed = sizes.boundBytesOf(port.slot);
  if (bytes != needed && (port.isInput || bytes != port.def->bytes())) {
    return BMRT_FAIL(status, INVALID_ARGUMENT,
                     "buffer for tensor '%.100s' has %" PRIu64 " bytes, needs %" PRIu64 " in a chip's memory",
                     port.def->name()->c_str(), bytes, needed);
  }
  const bool isInput = port.def->role() == TensorRole::Input;
  const uint32_t twin = isInput ? copied->to() : copied->from();
  const TensorDef &other = tensor(twin);
  // The chip's tensor may use the caller's buffer only if it has the tensor's largest size, which code of chips may
  // access, and if the copy is its only writer: an input buffer must not be modified.
  const bool isInPlace = other.view_of() < 0 && other.place() == Place::Workspace && other.bytes() == bytes &&
                         reinterpret_cast<uintptr_t>(pointer) % BMRT_ALIGNMENT == 0 &&
                         (!isInput || usesOf(*stage, twin).writes == 1);
  port.bound = static_cast<char *>(pointer);
  port.boundBytes = bytes;
  port.isOnChip = true;
  port.twin = isInPlace ? int32_t(twin) : -1;
  addressesCurrent = false;
  return BMRT_OK;
}

const Device *StageContext::chipOfPort(const Port &port) const {
  const CopyDef *copied = copyOf(*stage, port);
  return copied ? program->devices[size_t(chipOfCopy(*stage, *copied))] : nullptr;
}
