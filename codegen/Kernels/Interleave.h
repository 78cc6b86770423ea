//===- Interleave.h - Between planes and packed pixels ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_INTERLEAVE_H
#define TESSERA_CODEGEN_KERNELS_INTERLEAVE_H

#include "codegen/Kernels/Transpose.h"

namespace tessera::kernels {

/// Plans the copy of |nest| (tensors: from, to; elements of type |storage|) if it moves a few planes into packed
/// pixels, such as RGB, or back. Other copies get no plan.
std::optional<TiledMove> planInterleave(KernelBuilder &kb, const LoopNest &nest, mlir::Value from, mlir::Value to,
                                        mlir::Type storage);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_INTERLEAVE_H
