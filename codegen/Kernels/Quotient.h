//===- Quotient.h - Division by a constant without a division -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_QUOTIENT_H
#define TESSERA_CODEGEN_KERNELS_QUOTIENT_H

#include "codegen/Kernels/KernelBuilder.h"
#include "device_dialect/IR/Reciprocal.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tessera::kernels {

/// |x| / constant of |op| where only its integer is wanted, so that subnormals do not matter; null for other divisions
/// and where |kb|'s target does not fuse. |mayBeInfinite|: or NaN, which stays.
mlir::Value emitQuantisedQuotient(KernelBuilder &kb, mlir::arith::DivFOp op, mlir::Value x, bool mayBeInfinite);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_QUOTIENT_H
