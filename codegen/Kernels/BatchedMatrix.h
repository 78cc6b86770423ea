//===- BatchedMatrix.h - A matrix of a stack of them ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_BATCHEDMATRIX_H
#define TESSERA_CODEGEN_KERNELS_BATCHEDMATRIX_H

#include "codegen/Kernels/LoopNest.h"

namespace tessera::kernels {

/// Where a factor of a product lies: offset of its first element, and elements from row to row and column to column.
struct BatchedMatrix {
  mlir::Value base;
  int64_t rowStride, columnStride;
};

/// The matrix of row-major |type|, |transposed| or not, that meets batch |indices| of a result of |rank| dims.
BatchedMatrix matrixAt(KernelBuilder &kb, mlir::RankedTensorType type, int64_t rank,
                       llvm::ArrayRef<mlir::Value> indices, bool transposed);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_BATCHEDMATRIX_H
