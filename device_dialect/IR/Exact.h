//===- Exact.h - Functions whose floats decide integers ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// `device.exact` on a function: it computes with integers, so float arithmetic around them is that of
// bmodel/numerics_float.h, to the bit, on every chip. Convolutions, matrix products and recurrent ops in a float type
// are excepted.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_IR_EXACT_H
#define TESSERA_DEVICE_DIALECT_IR_EXACT_H

#include "mlir/Interfaces/FunctionInterfaces.h"

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

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_IR_EXACT_H
