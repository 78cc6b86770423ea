//===- ScalarPatterns.h - Formulas that form one function -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_IR_SCALARPATTERNS_H
#define TESSERA_DEVICE_DIALECT_IR_SCALARPATTERNS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

namespace tessera::device {

/// Returns x if |op| is 1 / (1 + e^-x) on f32, which every engine computes as the sigmoid of bmodel/numerics_float.h;
/// otherwise null.
inline mlir::Value matchSigmoid(mlir::arith::DivFOp op) {
  auto isOne = [](mlir::Value value) { return mlir::matchPattern(value, mlir::m_OneFloat()); };
  auto sum = op ? op.getRhs().getDefiningOp<mlir::arith::AddFOp>() : mlir::arith::AddFOp();
  if (!sum || !isOne(op.getLhs()) || !op.getType().isF32()) {
    return {};
  }
  mlir::Value power = isOne(sum.getLhs()) ? sum.getRhs() : isOne(sum.getRhs()) ? sum.getLhs() : mlir::Value();
  auto exp = power ? power.getDefiningOp<mlir::math::ExpOp>() : mlir::math::ExpOp();
  auto negative = exp ? exp.getOperand().getDefiningOp<mlir::arith::NegFOp>() : mlir::arith::NegFOp();
  return negative ? negative.getOperand() : mlir::Value();
}

/// Returns true if the sign of a zero |value| in a scalar region can become visible: in a float that leaves the region,
/// or as a divisor. It is not visible in integers, comparisons and absolute values.
bool showsSignOfZero(mlir::Value value);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_IR_SCALARPATTERNS_H
