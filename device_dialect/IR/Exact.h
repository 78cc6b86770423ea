//===- Exact.h - Functions whose floats decide integers ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// `device.exact` on a function: it computes with integers, so float arithmetic around them is that of
// bmodel/numerics_float.h, to the bit, on every chip, sums of matrix products included. Excepted is what
// hasSpecifiedBits() says no to.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_IR_EXACT_H
#define TESSERA_DEVICE_DIALECT_IR_EXACT_H

#include "mlir/Interfaces/FunctionInterfaces.h"
#include <optional>
#include <string>
#include <vector>

namespace tessera::device {

inline constexpr llvm::StringLiteral kExactAttr = "device.exact";

inline void setExact(mlir::Operation *function) {
  function->setAttr(kExactAttr, mlir::UnitAttr::get(function->getContext()));
}

/// Of the function that |op| stands in.
inline bool isExact(mlir::Operation *op) {
  auto function = op->getParentOfType<mlir::FunctionOpInterface>();
  return function && function->hasAttr(kExactAttr);
}

/// Whether every engine computes |op|, of a function that is exact, to the same bits. Sums of floats in convolutions,
/// in products with integer weights and scales, and in recurrent ops have no stated order.
bool hasSpecifiedBits(mlir::Operation *op);

/// Of a function: nodes of ops without specified bits, as lowering found them; set where the function is exact.
inline constexpr llvm::StringLiteral kExceptionsAttr = "device.exact_except";

/// Writes kExceptionsAttr: once, when all ops are device ops and none are fused yet.
void recordExceptions(mlir::Operation *function);
/// What was recorded; nothing of functions that promise no bits.
std::optional<std::vector<std::string>> exceptionsOf(mlir::Operation *function);

/// Whether |op| is a matrix product whose sums of floats have the order of bmodel/numerics_float.h: from 0, fused, in
/// the order of k, and then the bias.
bool isOrderedProduct(mlir::Operation *op);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_IR_EXACT_H
