//===- Requantise.h - From f32 to 8- and 16-bit integers -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_REQUANTISE_H
#define TESSERA_CODEGEN_KERNELS_REQUANTISE_H

#include "codegen/Kernels/KernelBuilder.h"
#include "device_dialect/IR/Requantise.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tessera::kernels {

using device::matchRequantise;
using device::Requantise;

/// |end|'s type of |value|, f32 in registers (a scalar or a vector).
mlir::Value emitRequantise(KernelBuilder &kb, const Requantise &end, mlir::Value value);

/// |value| between the bounds of |end|, rounded, as i32 without the zero point. Not |clampsLow|: what follows
/// saturates.
mlir::Value emitRounded(KernelBuilder &kb, const Requantise &end, mlir::Value value, bool clampsLow = true);

/// The dividend of |divide|, or x where that is max(x, 0) and the quotient becomes an integer whose lower bound is that
/// of zero: what is below it is clamped anyway.
mlir::Value withoutZeroClamp(mlir::arith::DivFOp divide);

/// Whether |value| of a scalar region may be NaN or infinite. Scales and sums that make an infinity of a 32-bit integer
/// are not thought of: the largest there are make 2^31 * 2^40.
bool mayBeNaN(mlir::Value value);

/// An integer constant of |type|, a scalar or a vector.
mlir::Value splatLike(KernelBuilder &kb, mlir::Type type, int64_t value);
/// A call of one of LLVM's intrinsics.
mlir::Value emitIntrinsic(KernelBuilder &kb, llvm::StringRef name, mlir::Type type, mlir::ValueRange operands);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_REQUANTISE_H
