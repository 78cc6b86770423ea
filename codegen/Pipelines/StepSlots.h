//===- StepSlots.h - Tensors of a step --------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_PIPELINES_STEPSLOTS_H
#define TESSERA_CODEGEN_PIPELINES_STEPSLOTS_H

#include "bmodel/writer.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tessera::codegen {

/// Calls |visit| with every tensor slot of the step.
void visitSlots(bmodel::StepDefT &step, llvm::function_ref<void(uint32_t &)> visit);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_STEPSLOTS_H
