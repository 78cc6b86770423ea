//===- Pipeline.h - Layouts, packed weights and addresses on x86 -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_TRANSFORMS_PIPELINE_H
#define TESSERA_CODEGEN_X86_TRANSFORMS_PIPELINE_H

#include "codegen/X86/X86Target.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace tessera::x86 {

/// Appends what brings fused device ops (device::buildLoweringPipeline) into the form that kernels of |target| read:
/// layouts, algorithms of convolutions, packed weights. |manager| works on modules.
void buildPackingPipeline(mlir::OpPassManager &manager, const X86Target &target);

/// The same, and addresses behind it: what is emitted next. |separate|: every tensor keeps bytes of its own.
void buildPlacementPipeline(mlir::OpPassManager &manager, const X86Target &target, bool separate = false);

/// Registers it as --x86-placement.
void registerPlacementPipeline();

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_TRANSFORMS_PIPELINE_H
