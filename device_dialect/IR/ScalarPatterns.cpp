//===- ScalarPatterns.cpp - Formulas that form one function ---------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/ScalarPatterns.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tessera::device {
namespace {

bool isNonZero(Value value) {
  FloatAttr number;
  return matchPattern(value, m_Constant(&number)) && !number.getValue().isZero();
}

/// Effect of an op on the sign of a zero operand.
enum class Sign { hidden, inherited, shown };

Sign signBehind(OpOperand &use) {
  Operation *op = use.getOwner();
  if (isa<arith::FPToSIOp, arith::FPToUIOp, arith::CmpFOp, math::AbsFOp>(op)) {
    return Sign::hidden;
  }
  if (isa<arith::AddFOp, arith::SubFOp>(op) && isNonZero(op->getOperand(1 - use.getOperandNumber()))) {
    return Sign::hidden; // the sum equals the other operand
  }
  if (isa<arith::DivFOp>(op)) {
    return use.getOperandNumber() == 0 ? Sign::inherited : Sign::shown;
  }
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp,
             arith::SelectOp, arith::ExtFOp, arith::TruncFOp, math::RoundEvenOp, math::FloorOp, math::CeilOp,
             math::TruncOp>(op)
             ? Sign::inherited
             : Sign::shown;
}

} // namespace

bool showsSignOfZero(Value value) {
  llvm::SmallSetVector<Value, 8> reached;
  reached.insert(value);
  for (size_t i = 0; i < reached.size(); ++i) {
    for (OpOperand &use : reached[i].getUses()) {
      Sign sign = signBehind(use);
      if (sign == Sign::shown) {
        return true;
      }
      if (sign == Sign::inherited) {
        reached.insert(use.getOwner()->getResult(0));
      }
    }
  }
  return false;
}

} // namespace tessera::device
