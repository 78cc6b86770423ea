//===- BatchedMatrix.h - One matrix of a batch of matrices ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_BATCHEDMATRIX_H
#define TESSERA_CODEGEN_KERNELS_BATCHEDMATRIX_H

#include "codegen/Kernels/LoopNest.h"

namespace tessera::kernels {

/// Addresses one matrix operand: the offset of its first element and the distances between rows and between columns,
/// all in elements.
struct BatchedMatrix {
  mlir::Value base;
  Dim rowStride = 0, columnStride = 0;
};

/// Returns the matrix of row-major |type| (transposed if |transposed|) for the batch |indices| of a result of |rank|
/// dims. Batch dims of size 1 broadcast.
BatchedMatrix matrixAt(KernelBuilder &kb, mlir::RankedTensorType type, int64_t rank,
                       llvm::ArrayRef<mlir::Value> indices, bool transposed);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_BATCHEDMATRIX_H
