//===- StateTensors.h - States of a stage -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_PIPELINES_STATETENSORS_H
#define TESSERA_CODEGEN_PIPELINES_STATETENSORS_H

#include "bmodel/writer.h"
#include "llvm/ADT/ArrayRef.h"

namespace tessera::codegen {

/// Slots of a state. |current| keeps its memory between runs; |next| is the value that a run computes for the following
/// one, and has no memory before placeNextStates().
struct StateSlots {
  uint32_t current, next;
};

/// Places the next values. A next value has the bytes of the current one if the run has read these for the last time
/// before it writes the first of them. The others are in the workspace |workspace|, from where steps at the end of the
/// first subnet copy them.
void placeNextStates(bmodel::StageDefT &stage, llvm::ArrayRef<StateSlots> states, uint32_t workspace);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_STATETENSORS_H
