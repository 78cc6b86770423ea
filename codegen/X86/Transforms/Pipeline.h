//===- Pipeline.h - Pass pipelines of the x86 family ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_TRANSFORMS_PIPELINE_H
#define TESSERA_CODEGEN_X86_TRANSFORMS_PIPELINE_H

#include "codegen/X86/X86Target.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace tessera::x86 {

/// Appends the passes that bring fused device ops (device::buildLoweringPipeline) into the form that kernels of
/// |target| read: layouts, algorithms of convolutions, packed weights. |manager| operates on modules.
void buildPackingPipeline(mlir::OpPassManager &manager, const X86Target &target);

/// Appends the packing pipeline and the assignment of addresses, after which kernels are emitted. |separate|: tensors
/// do not share memory.
void buildPlacementPipeline(mlir::OpPassManager &manager, const X86Target &target, bool separate = false);

/// Registers buildPlacementPipeline() as --x86-placement.
void registerPlacementPipeline();

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_TRANSFORMS_PIPELINE_H
