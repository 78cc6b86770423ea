//===- Quotient.h - Constant division by multiplication ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_QUOTIENT_H
#define TESSERA_CODEGEN_KERNELS_QUOTIENT_H

#include "codegen/Kernels/KernelBuilder.h"
#include "device_dialect/IR/Reciprocal.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tessera::kernels {

/// Emits |x| / constant for |op| as multiplications, if only the rounded integer of the quotient is used, so that
/// subnormals do not matter. Returns null for other divisions and for targets without FMA. |mayBeInfinite|: |x| may be
/// infinite, or NaN, which is preserved.
mlir::Value emitQuantisedQuotient(KernelBuilder &kb, mlir::arith::DivFOp op, mlir::Value x, bool mayBeInfinite);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_QUOTIENT_H
