//===- Indexing.h - Indices read from tensors -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_INDEXING_H
#define TESSERA_CODEGEN_KERNELS_INDEXING_H

#include "codegen/Kernels/KernelBuilder.h"

namespace tessera::kernels {

/// Loads element |offset| of index operand |operand| (i32 or i64) as i64. Negative values count from |size|; values out
/// of range are clamped.
mlir::Value loadIndex(KernelBuilder &kb, unsigned operand, mlir::Value offset, Dim size);

/// Returns the sum of strides[i] * index i over a tuple of |count| indices that begins at |start|.
mlir::Value tupleOffset(KernelBuilder &kb, unsigned operand, mlir::Value start, int64_t count,
                        llvm::ArrayRef<Dim> sizes, llvm::ArrayRef<Dim> strides);

/// Returns the integer type as wide as |elementType|, with which copies preserve all bits.
mlir::Type storageElement(KernelBuilder &kb, mlir::Type elementType);

/// Copies |size| contiguous elements.
void copyRow(KernelBuilder &kb, mlir::Type elementType, Dim size, mlir::Value from, mlir::Value fromOffset,
             mlir::Value to, mlir::Value toOffset);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_INDEXING_H
