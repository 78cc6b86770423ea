//===- Rows.h - Vectorised walks along contiguous rows ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_ROWS_H
#define TESSERA_CODEGEN_KERNELS_ROWS_H

#include "codegen/Kernels/KernelBuilder.h"

namespace tessera::kernels {

/// Walks [0, size) in vectors of |lanes|, the last one under a mask (null elsewhere), carrying |carried|.
llvm::SmallVector<mlir::Value> overRow(
    KernelBuilder &kb, int64_t size, unsigned lanes, llvm::ArrayRef<mlir::Value> carried,
    llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value i, mlir::Value mask, mlir::ValueRange carried)> body);

/// The same without carried values.
void overRow(KernelBuilder &kb, int64_t size, unsigned lanes,
             llvm::function_ref<void(mlir::Value i, mlir::Value mask)> body);

/// How many of |count| independent items a tile takes, so that it has about |workPerTile|.
int64_t itemsPerTile(const KernelBuilder &kb, int64_t count, int64_t workPerItem, int64_t workPerTile);

/// Emits |count| independent items as tiles of some |workPerItem| * n = |workPerTile| (any unit).
void forItems(KernelBuilder &kb, int64_t count, int64_t workPerItem, int64_t workPerTile,
              llvm::function_ref<void(mlir::Value item)> body);

/// The same for |count| rows of |element|s in registers, which threads share where they can: vectors have |lanes|
/// lanes, which becomes kRowThreads then.
void forRows(KernelBuilder &kb, int64_t count, int64_t workPerRow, int64_t workPerTile, mlir::Type element,
             unsigned &lanes, llvm::function_ref<void(mlir::Value row)> body);

/// Product of |sizes|.
int64_t product(llvm::ArrayRef<int64_t> sizes);

/// Emits an internal error and fails if an operand or result is not row-major: the layout pass keeps
/// this op row-major.
llvm::LogicalResult requireRowMajor(mlir::Operation *op);

/// where ? value : other, lane by lane; |value| itself without a mask.
mlir::Value keepActive(KernelBuilder &kb, mlir::Value mask, mlir::Value value, mlir::Value other);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_ROWS_H
