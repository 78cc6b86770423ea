// SPDX-License-Identifier: Apache-2.0
//===- StageProgram.h - The loaded code of a stage ------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_STAGEPROGRAM_H
#define TESSERA_BMRUNTIME_SRC_CORE_STAGEPROGRAM_H

#include "Device.h"
#include "KernelContract.h"
#include "Memory.h"
#include "TaskSchedule.h"
#include "bmodel/reader.h"

namespace bmrt::core {

/// A stream of a subnet with the sizes of its tensors. Contexts add the addresses.
struct Stream {
  bmrt_stream_t call = {};
  int32_t workspace = -1; ///< index of the workspace reserved for streams; -1: none
  Array<uint32_t> slots;  ///< slots of its tensors
  Array<uint64_t> bytes;
  Array<const char *> layers;
};

/// The loaded code of one subnet. Control subnets have neither code nor a back end.
struct SubnetProgram {
  const bmodel::SubnetDef *def = nullptr;
  const bmrt_backend_t *backend = nullptr;
  Device *device = nullptr;       ///< its chip
  bmrt_program_t *code = nullptr; ///< owned by the model; null without a code segment
  Array<void *> kernels;          ///< in the order of SubnetDef.kernels
  Array<KernelContract> contracts;
  Array<Stream> streams; ///< in the order of the plan

  /// Returns true if its kernels and streams go to a queue of the chip; otherwise the host runs them.
  bool usesQueue() const { return backend && !hasHostKernels(*backend); }
};

/// The origin of a dim slot's value: steps that set it during a run, a range with one value only, the shapes of inputs,
/// an expression over slots that are known before a run, or the states, whose length it is.
enum class DimKind : uint8_t { SetByStep, Fixed, Bound, Derived, Length };

/// One stage with its code, or the reason why it cannot run here.
struct StageProgram {
  const bmodel::NetDef *net = nullptr;
  const bmodel::StageDef *def = nullptr;
  uint32_t stageIndex = 0;
  Array<SubnetProgram> subnets;
  Array<Device *> devices;    ///< by chip; null for chips without queues or memory in this stage
  Array<uint32_t> alignments; ///< in bytes, by tensor, for tensors in the caller's memory (findAlignments)
  Array<DimKind> dimKinds;    ///< by dim slot
  TaskSchedule schedule;
  bmrt_status_t rejection = {}; ///< code is BMRT_OK if the stage can run
};

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_STAGEPROGRAM_H
