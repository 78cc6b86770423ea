//===- Quotient.h - Division by a constant without a division -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_QUOTIENT_H
#define TESSERA_CODEGEN_KERNELS_QUOTIENT_H

#include "codegen/Kernels/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <optional>

namespace tessera::kernels {

/// high + low is 1 / divisor to 48 bits, and fma(x, high, x * low) is the rounded x / divisor for every x whose
/// quotient is neither subnormal nor infinite.
struct ReciprocalPair {
  float high, low;
};

/// The pair, if it holds that for |divisor|. It does for nearly all.
std::optional<ReciprocalPair> exactReciprocal(float divisor);

/// |x| / constant of |op| where only its integer is wanted, so that subnormals do not matter; null for other divisions
/// and where |kb|'s target does not fuse. |mayBeInfinite|: or NaN, which stays.
mlir::Value emitQuantisedQuotient(KernelBuilder &kb, mlir::arith::DivFOp op, mlir::Value x, bool mayBeInfinite);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_QUOTIENT_H
