//===- TopActivationScalars.cpp - Scalar form of the activations ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/ScalarEmitter.h"
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/IR/TopElementwiseOps.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace tessera::top;
using namespace tessera::top::detail;

Value ReluOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e(builder, loc, isUnsignedElement(elementOf(getX())));
  return e.max(v[0], e.constant(v[0], 0));
}

Value SigmoidOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  return ScalarEmitter(builder, loc).sigmoid(v[0]);
}

Value SiluOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e(builder, loc);
  return e.mul(v[0], e.sigmoid(v[0]));
}

Value HardSwishOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e(builder, loc);
  Value line = e.add(e.mul(v[0], e.constant(v[0], 1.0 / 6)), e.constant(v[0], 0.5));
  return e.mul(v[0], e.clamp(line, 0, 1));
}

Value MishOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e(builder, loc);
  return e.mul(v[0], e.math<math::TanhOp>(e.softplus(v[0])));
}

Value SoftplusOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  return ScalarEmitter(builder, loc).softplus(v[0]);
}

Value SoftsignOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e(builder, loc);
  return e.div(v[0], e.add(e.constant(v[0], 1), e.abs(v[0])));
}

Value GeluOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e(builder, loc);
  Value x = v[0];
  Value curve;
  if (getTanh()) {
    Value cube = e.mul(e.constant(x, 0.044715), e.mul(x, e.mul(x, x)));
    Value inner = e.mul(e.constant(x, std::sqrt(2 / std::numbers::pi)), e.add(x, cube));
    curve = e.math<math::TanhOp>(inner);
  } else {
    curve = e.math<math::ErfOp>(e.mul(x, e.constant(x, std::numbers::sqrt2 / 2)));
  }
  return e.mul(e.mul(e.constant(x, 0.5), x), e.add(e.constant(x, 1), curve));
}

Value LeakyReluOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e(builder, loc);
  Value scaled = e.mul(v[0], e.constant(v[0], getAlpha().convertToFloat()));
  return e.select(e.less(v[0], e.constant(v[0], 0)), scaled, v[0]);
}

// Emits alpha (e^x - 1).
static Value exponentialBranch(ScalarEmitter &e, Value x, double alpha) {
  return e.mul(e.constant(x, alpha), e.sub(e.math<math::ExpOp>(x), e.constant(x, 1)));
}

Value EluOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e(builder, loc);
  Value branch = exponentialBranch(e, v[0], getAlpha().convertToFloat());
  return e.select(e.less(v[0], e.constant(v[0], 0)), branch, v[0]);
}

Value CeluOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e(builder, loc);
  double alpha = getAlpha().convertToFloat();
  Value zero = e.constant(v[0], 0);
  Value scaled = e.div(v[0], e.constant(v[0], alpha));
  Value branch = e.mul(e.constant(v[0], alpha), e.sub(e.math<math::ExpOp>(scaled), e.constant(v[0], 1)));
  return e.add(e.max(zero, v[0]), e.min(zero, branch));
}

Value ThresholdedReluOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e(builder, loc);
  return e.select(e.less(e.constant(v[0], getAlpha().convertToFloat()), v[0]), v[0], e.constant(v[0], 0));
}

Value SeluOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e(builder, loc);
  Value branch = exponentialBranch(e, v[0], getAlpha().convertToFloat());
  Value unscaled = e.select(e.less(e.constant(v[0], 0), v[0]), v[0], branch);
  return e.mul(e.constant(v[0], getGamma().convertToFloat()), unscaled);
}

Value HardSigmoidOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e(builder, loc);
  Value line = e.mul(v[0], e.constant(v[0], getAlpha().convertToFloat()));
  return e.clamp(e.add(line, e.constant(v[0], getBeta().convertToFloat())), 0, 1);
}

Value ShrinkOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e(builder, loc);
  Value bias = e.constant(v[0], getBias().convertToFloat());
  double lambd = getLambd().convertToFloat();
  Value above = e.select(e.less(e.constant(v[0], lambd), v[0]), e.sub(v[0], bias), e.constant(v[0], 0));
  return e.select(e.less(v[0], e.constant(v[0], -lambd)), e.add(v[0], bias), above);
}

// Checks whether a bound has an effect. Integer bounds outside the type's range do not, and would wrap around as
// constants.
static bool bounds(Type element, double bound, bool isLow) {
  if (std::isinf(bound)) {
    return false;
  }
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer) {
    return true;
  }
  bool isUnsigned = integer.isUnsigned();
  double low = isUnsigned ? 0 : -std::ldexp(1.0, integer.getWidth() - 1);
  double high = std::ldexp(1.0, integer.getWidth() - (isUnsigned ? 0 : 1));
  return isLow ? bound > low : bound < high;
}

Value ClipOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  Type element = elementOf(getX());
  ScalarEmitter e(builder, loc, isUnsignedElement(element));
  double lo = getLo().convertToDouble();
  double hi = getHi().convertToDouble();
  Value x = bounds(element, lo, true) ? e.max(v[0], e.constant(v[0], lo)) : v[0];
  return bounds(element, hi, false) ? e.min(x, e.constant(x, hi)) : x;
}
