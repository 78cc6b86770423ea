//===- Exact.h - Functions whose floats decide integers ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// `device.exact` on a function: the function computes with integers, and float arithmetic around them follows
// bmodel/numerics_float.h bit for bit on every chip, including the sums of matmuls. Exceptions are the ops for which
// hasSpecifiedBits() returns false.
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

/// Returns true if the function around |op| is exact.
inline bool isExact(mlir::Operation *op) {
  auto function = op->getParentOfType<mlir::FunctionOpInterface>();
  return function && function->hasAttr(kExactAttr);
}

/// Returns true if every engine computes |op|, in an exact function, to the same bits. Float sums in convolutions, in
/// matmuls with integer weights and scales, and in recurrent ops do not have a specified order.
bool hasSpecifiedBits(mlir::Operation *op);

/// Attribute of an exact function: nodes of the ops without specified bits, as recorded at lowering.
inline constexpr llvm::StringLiteral kExceptionsAttr = "device.exact_except";

/// Writes kExceptionsAttr. Call it once, when all ops are device ops and before any are fused.
void recordExceptions(mlir::Operation *function);
/// Returns the recorded nodes; nothing for functions that do not promise equal bits.
std::optional<std::vector<std::string>> exceptionsOf(mlir::Operation *function);

/// Returns true if |op| is a matmul whose float sums follow bmodel/numerics_float.h: from 0, fused, in the order of k,
/// then the bias.
bool isOrderedContraction(mlir::Operation *op);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_IR_EXACT_H
