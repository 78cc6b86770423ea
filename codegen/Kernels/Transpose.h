//===- Transpose.h - Copies of strided rectangles ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_TRANSPOSE_H
#define TESSERA_CODEGEN_KERNELS_TRANSPOSE_H

#include "codegen/Kernels/LoopNest.h"

namespace tessera::kernels {

/// A copy or fill split into tiles; body(t) executes tile t in [0, tiles).
struct TiledMove {
  Dim tiles;
  std::function<void(mlir::Value)> body;
};

/// Plans the copy of the rectangle of |nest| (tensors: from, to). All bits of the elements are preserved.
TiledMove planMove(KernelBuilder &kb, const LoopNest &nest, mlir::Value from, mlir::Value to, mlir::Type elementType);

/// Plans storing the scalar |value| (register type) to the rectangle of |nest| (tensors: to).
TiledMove planFill(KernelBuilder &kb, const LoopNest &nest, mlir::Value value, mlir::Value to, mlir::Type elementType);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_TRANSPOSE_H
