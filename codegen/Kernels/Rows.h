//===- Rows.h - Vectorised iteration over rows ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_ROWS_H
#define TESSERA_CODEGEN_KERNELS_ROWS_H

#include "codegen/Kernels/KernelBuilder.h"

namespace tessera::kernels {

/// Iterates over [0, size) in vectors of |lanes| with carried values; |mask| is null except for a partial last vector.
/// If threads share the row, an iteration of the loop processes several vectors, whose loads are then in flight at the
/// same time; the order of sums is the same.
llvm::SmallVector<mlir::Value> overRow(
    KernelBuilder &kb, Dim size, unsigned lanes, llvm::ArrayRef<mlir::Value> carried,
    llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value i, mlir::Value mask, mlir::ValueRange carried)> body);

/// Iterates as above without carried values.
void overRow(KernelBuilder &kb, Dim size, unsigned lanes,
             llvm::function_ref<void(mlir::Value i, mlir::Value mask)> body);

/// Stores |compute|'s values of [0, size) in vectors of |lanes|. If threads share the row, several vectors are computed
/// before the first of them is stored: a GPU does not load what follows a store before that store.
void mapRow(KernelBuilder &kb, Dim size, unsigned lanes,
            llvm::function_ref<mlir::Value(mlir::Value i, mlir::Value mask)> compute,
            llvm::function_ref<void(mlir::Value i, mlir::Value mask, mlir::Value value)> store);

/// Returns how many of |count| independent items a tile takes to have about |workPerTile| work, at likely sizes.
int64_t itemsPerTile(const KernelBuilder &kb, Dim count, Dim workPerItem, int64_t workPerTile);

/// Emits |count| independent items as tiles of about |workPerTile| work (in the unit of |workPerItem|).
void forItems(KernelBuilder &kb, Dim count, Dim workPerItem, int64_t workPerTile,
              llvm::function_ref<void(mlir::Value item)> body);

/// Emits |count| rows of |element|s in registers like forItems(). If threads can share rows, they do, and |lanes|, the
/// lanes of the vectors, becomes kRowThreads.
void forRows(KernelBuilder &kb, Dim count, Dim workPerRow, int64_t workPerTile, mlir::Type element, unsigned &lanes,
             llvm::function_ref<void(mlir::Value row)> body);

/// Reports an internal error if an operand or result is not row-major; the layout pass keeps this op row-major.
llvm::LogicalResult requireRowMajor(mlir::Operation *op);

/// Returns mask ? value : other, lane by lane; returns |value| if |mask| is null.
mlir::Value keepActive(KernelBuilder &kb, mlir::Value mask, mlir::Value value, mlir::Value other);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_ROWS_H
