//===- BlockMatMul.h - The quantisation of rows by blocks -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_BLOCKMATMUL_H
#define TESSERA_CODEGEN_KERNELS_BLOCKMATMUL_H

#include "codegen/Kernels/KernelBuilder.h"

namespace tessera::kernels {

/// The scale of a block of a row, and the factor that its entries are multiplied by before they are rounded; both f32.
struct RowScale {
  mlir::Value scale, inverse;
};

/// Returns the scale of a block whose magnitudes, as integers, are at most |largestBits| (i32).
RowScale emitRowScale(KernelBuilder &kb, mlir::Value largestBits);

/// Returns the bits of |x| (f32, scalar or vector) without the sign, which as integers are ordered like the magnitudes;
/// those of NaN are largest.
mlir::Value emitMagnitudeBits(KernelBuilder &kb, mlir::Value x);

/// Returns |x| (f32, scalar or vector) times |inverse|, rounded to i8.
mlir::Value emitQuantized(KernelBuilder &kb, mlir::Value x, mlir::Value inverse);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_BLOCKMATMUL_H
