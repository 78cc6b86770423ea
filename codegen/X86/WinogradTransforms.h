//===- WinogradTransforms.h - Transforms of F(m x m, 3 x 3) --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_WINOGRADTRANSFORMS_H
#define TESSERA_CODEGEN_X86_WINOGRADTRANSFORMS_H

#include "codegen/X86/X86KernelBuilder.h"

namespace tessera::x86 {

/// A row or column of a tile, one vector of channels per position.
using Line = llvm::SmallVector<mlir::Value, 6>;

/// Computes one dimension of the input transform of F(m x m, 3 x 3): B^T times a line of m + 2 values. |m|: 2 or 4.
Line inputTransform(KernelBuilder &kb, int64_t m, llvm::ArrayRef<mlir::Value> d);

/// Computes one dimension of the output transform: A^T times a line of m + 2 values; returns m values.
Line outputTransform(KernelBuilder &kb, int64_t m, llvm::ArrayRef<mlir::Value> p);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_WINOGRADTRANSFORMS_H
