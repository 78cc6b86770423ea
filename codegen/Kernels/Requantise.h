//===- Requantise.h - From f32 to 8- and 16-bit integers --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_REQUANTISE_H
#define TESSERA_CODEGEN_KERNELS_REQUANTISE_H

#include "codegen/Kernels/KernelBuilder.h"
#include "device_dialect/IR/Requantise.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tessera::kernels {

using device::matchRequantise;
using device::Requantise;

/// Converts |value|, f32 in registers (scalar or vector), to |end|'s type.
mlir::Value emitRequantise(KernelBuilder &kb, const Requantise &end, mlir::Value value);

/// Clamps |value| to the bounds of |end| and rounds it; returns i32 without the zero point. |clampsLow| is false if the
/// caller saturates the lower bound.
mlir::Value emitRounded(KernelBuilder &kb, const Requantise &end, mlir::Value value, bool clampsLow = true);

/// Returns the dividend of |divide|. If that is max(x, 0) and the quotient becomes an integer whose lower bound is zero
/// or more in real numbers, returns x, because the requantisation clamps it anyway.
mlir::Value withoutZeroClamp(mlir::arith::DivFOp divide);

/// Returns true if |value| of a scalar region may be NaN or infinite. Ignores scales and sums that could turn a 32-bit
/// integer into an infinity: the largest existing ones reach 2^31 * 2^40.
bool mayBeNaN(mlir::Value value);

/// Returns an integer constant of |type|, scalar or vector.
mlir::Value splatLike(KernelBuilder &kb, mlir::Type type, int64_t value);
/// Emits a call of an LLVM intrinsic.
mlir::Value emitIntrinsic(KernelBuilder &kb, llvm::StringRef name, mlir::Type type, mlir::ValueRange operands);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_REQUANTISE_H
