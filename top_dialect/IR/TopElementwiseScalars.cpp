//===- TopElementwiseScalars.cpp - Scalar form of arithmetic, logic and mathematics ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/ScalarEmitter.h"
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/IR/TopElementwiseOps.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tessera::top;
using namespace tessera::top::detail;

// Returns an emitter with the signedness of the op's operand `index`.
static ScalarEmitter emitterFor(Operation *op, OpBuilder &builder, Location loc, unsigned index = 0) {
  return ScalarEmitter(builder, loc, isUnsignedElement(elementOf(op->getOperand(index))));
}

static bool isFloat(Value x) { return isa<FloatType>(getElementTypeOrSelf(x.getType())); }

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value AddOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  return emitterFor(*this, builder, loc).add(v[0], v[1]);
}

Value SubOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  return emitterFor(*this, builder, loc).sub(v[0], v[1]);
}

Value MulOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  return emitterFor(*this, builder, loc).mul(v[0], v[1]);
}

Value DivOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  return emitterFor(*this, builder, loc).div(v[0], v[1]);
}

Value MinOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  return emitterFor(*this, builder, loc).min(v[0], v[1]);
}

Value MaxOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  return emitterFor(*this, builder, loc).max(v[0], v[1]);
}

Value PowOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  Type base = getElementTypeOrSelf(v[0].getType());
  Type exponent = getElementTypeOrSelf(v[1].getType());
  ScalarEmitter onBase = emitterFor(*this, builder, loc, 0);
  ScalarEmitter onExponent = emitterFor(*this, builder, loc, 1);
  if (isFloat(v[0])) {
    return math::PowFOp::create(builder, loc, v[0], onExponent.cast(v[1], base, false));
  }
  if (!isFloat(v[1])) {
    return math::IPowIOp::create(builder, loc, v[0], onExponent.cast(v[1], base, false));
  }
  // An integer raised to a fractional power is computed in the type of the exponent and truncated.
  Value power = math::PowFOp::create(builder, loc, onBase.cast(v[0], exponent, false), v[1]);
  return onExponent.cast(power, base, isUnsignedElement(elementOf(getA())));
}

Value ModOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e = emitterFor(*this, builder, loc);
  if (isFloat(v[0])) {
    if (getFmod()) {
      return arith::RemFOp::create(builder, loc, v[0], v[1]);
    }
    return e.sub(v[0], e.mul(v[1], e.math<math::FloorOp>(e.div(v[0], v[1]))));
  }
  if (isUnsignedElement(elementOf(getA()))) {
    return arith::RemUIOp::create(builder, loc, v[0], v[1]);
  }
  Value rest = arith::RemSIOp::create(builder, loc, v[0], v[1]);
  if (getFmod()) {
    return rest;
  }
  // The result has the sign of the divisor: add the divisor to a remainder of the opposite sign.
  Value zero = e.constant(rest, 0);
  Value differs = e.less(arith::XOrIOp::create(builder, loc, rest, v[1]), zero);
  Value moves = arith::AndIOp::create(builder, loc, differs, e.notEqual(rest, zero));
  return e.select(moves, e.add(rest, v[1]), rest);
}

Value BitShiftOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e = emitterFor(*this, builder, loc);
  Value last = e.constant(v[1], elementOf(getA()).getIntOrFloatBitWidth() - 1);
  Value by = arith::MinUIOp::create(builder, loc, v[1], last);
  if (!getLeft() && !isUnsignedElement(elementOf(getA()))) {
    return arith::ShRSIOp::create(builder, loc, v[0], by);
  }
  Value shifted =
      getLeft() ? Value(arith::ShLIOp::create(builder, loc, v[0], by)) : arith::ShRUIOp::create(builder, loc, v[0], by);
  return e.select(e.equal(by, v[1]), shifted, e.constant(v[0], 0));
}

Value PReluOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e = emitterFor(*this, builder, loc);
  return e.select(e.less(v[0], e.constant(v[0], 0)), e.mul(v[1], v[0]), v[0]);
}

//===----------------------------------------------------------------------===//
// Logic and comparison
//===----------------------------------------------------------------------===//

Value AndOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  return arith::AndIOp::create(builder, loc, v[0], v[1]);
}

Value OrOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  return arith::OrIOp::create(builder, loc, v[0], v[1]);
}

Value XorOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  return arith::XOrIOp::create(builder, loc, v[0], v[1]);
}

Value NotOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e = emitterFor(*this, builder, loc);
  return arith::XOrIOp::create(builder, loc, v[0], e.constant(v[0], -1));
}

Value CompareOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e = emitterFor(*this, builder, loc);
  switch (getKind()) {
  case CompareKind::eq:
    return e.equal(v[0], v[1]);
  case CompareKind::ne:
    return e.notEqual(v[0], v[1]);
  case CompareKind::lt:
    return e.less(v[0], v[1]);
  case CompareKind::le:
    return e.lessEqual(v[0], v[1]);
  case CompareKind::gt:
    return e.less(v[1], v[0]);
  case CompareKind::ge:
    return e.lessEqual(v[1], v[0]);
  }
  return {};
}

Value WhereOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  return arith::SelectOp::create(builder, loc, v[0], v[1], v[2]);
}

Value IsInfOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e = emitterFor(*this, builder, loc);
  Value high = e.equal(v[0], e.constant(v[0], std::numeric_limits<double>::infinity()));
  Value low = e.equal(v[0], e.constant(v[0], -std::numeric_limits<double>::infinity()));
  Value none = e.constant(high, 0);
  return arith::OrIOp::create(builder, loc, getDetectPositive() ? high : none, getDetectNegative() ? low : none);
}

Value IsNanOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, v[0], v[0]);
}

//===----------------------------------------------------------------------===//
// Mathematics
//===----------------------------------------------------------------------===//

Value AbsOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  return emitterFor(*this, builder, loc).abs(v[0]);
}

Value NegOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  return emitterFor(*this, builder, loc).neg(v[0]);
}

// NaN stays NaN: the result is 0 only if x equals 0.
Value SignOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e = emitterFor(*this, builder, loc);
  Value zero = e.constant(v[0], 0);
  Value equal = e.equal(v[0], zero);
  Value rest = e.select(equal, zero, v[0]);
  Value negative =
      isUnsignedElement(elementOf(getX())) ? rest : e.select(e.less(v[0], zero), e.constant(v[0], -1), rest);
  return e.select(e.less(zero, v[0]), e.constant(v[0], 1), negative);
}

Value ReciprocalOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e = emitterFor(*this, builder, loc);
  return e.div(e.constant(v[0], 1), v[0]);
}

Value RsqrtOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e = emitterFor(*this, builder, loc);
  return e.div(e.constant(v[0], 1), e.math<math::SqrtOp>(v[0]));
}

// Ops that map to one math op each; on integers, rounding is the identity.
#define TOP_MATH(OP, MATH)                                                                                             \
  Value OP::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {                                               \
    return isFloat(v[0]) ? Value(MATH::create(builder, loc, v[0])) : v[0];                                             \
  }
TOP_MATH(CeilOp, math::CeilOp)
TOP_MATH(FloorOp, math::FloorOp)
TOP_MATH(RoundOp, math::RoundEvenOp)
TOP_MATH(SqrtOp, math::SqrtOp)
TOP_MATH(ExpOp, math::ExpOp)
TOP_MATH(LogOp, math::LogOp)
TOP_MATH(SinOp, math::SinOp)
TOP_MATH(CosOp, math::CosOp)
TOP_MATH(TanOp, math::TanOp)
TOP_MATH(AsinOp, math::AsinOp)
TOP_MATH(AcosOp, math::AcosOp)
TOP_MATH(AtanOp, math::AtanOp)
TOP_MATH(SinhOp, math::SinhOp)
TOP_MATH(CoshOp, math::CoshOp)
TOP_MATH(TanhOp, math::TanhOp)
TOP_MATH(AsinhOp, math::AsinhOp)
TOP_MATH(AcoshOp, math::AcoshOp)
TOP_MATH(AtanhOp, math::AtanhOp)
TOP_MATH(ErfOp, math::ErfOp)
#undef TOP_MATH

// Scalars are signless: convert ui8 to i8.
Value CastOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  Type element = getTo();
  if (element.isUnsignedInteger()) {
    element = builder.getIntegerType(element.getIntOrFloatBitWidth());
  }
  return emitterFor(*this, builder, loc).cast(v[0], element, getTo().isUnsignedInteger());
}

Value BitcastOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  Type to = getTo();
  to = to.isInteger() ? builder.getIntegerType(to.getIntOrFloatBitWidth()) : to;
  Type result = mlir::isa<VectorType>(v[0].getType()) ? Type(cast<VectorType>(v[0].getType()).clone(to)) : to;
  return result == v[0].getType() ? v[0] : Value(arith::BitcastOp::create(builder, loc, result, v[0]));
}
