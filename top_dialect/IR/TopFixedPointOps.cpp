//===- TopFixedPointOps.cpp - requantize: inference, scalar form ----------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopFixedPointOps.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/FixedPoint.h"
#include "top_dialect/IR/ShapeInference.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::top;
using namespace tessera::top::detail;

#define GET_OP_CLASSES
#include "top_dialect/IR/TopFixedPointOps.cpp.inc"

/// Returns true if |shape| equals |wanted|, i.e. broadcasting another operand to it did not change it.
static bool sameDims(ArrayRef<Dim> shape, ArrayRef<Dim> wanted) {
  return shape.size() == wanted.size() && llvm::all_of(llvm::zip_equal(shape, wanted), [](auto pair) {
           return !std::get<1>(pair).is(1) || std::get<0>(pair).is(1);
         });
}

static LogicalResult checkRange(RequantizeOp op) {
  Type type = op.getTo();
  unsigned bits = type.isInteger() ? type.getIntOrFloatBitWidth() : 0;
  bool isUnsigned = type.isUnsignedInteger(), known = type.isSignlessInteger() || isUnsigned;
  if (!known || !(bits == 8 || bits == 16 || (bits == 32 && !isUnsigned))) {
    return op.emitOpError() << "the result has element type " << type
                            << ", but only 'i8', 'ui8', 'i16', 'ui16' and 'i32' are allowed (C4)";
  }
  int64_t least = isUnsigned ? 0 : -(int64_t(1) << (bits - 1)), most = least + (int64_t(1) << bits) - 1;
  auto low = static_cast<int64_t>(op.getLow()), high = static_cast<int64_t>(op.getHigh());
  if (low < least || high > most || low > high) {
    return op.emitOpError() << "low is " << low << " and high is " << high << ", but " << least
                            << " <= low <= high <= " << most << " is required (C4)";
  }
  return success();
}

LogicalResult RequantizeOp::inferShapes(SmallVectorImpl<RankedTensorType> &types) {
  Type element = elementOf(getX());
  if (!element.isSignlessInteger(32) && !element.isSignlessInteger(64)) {
    return emitOpError() << "x has element type " << element << ", but only 'i32' and 'i64' are allowed (C1)";
  }
  for (Value parameter : {getMultiplier(), getShift()}) {
    if (!elementOf(parameter).isSignlessInteger(32)) {
      return emitOpError() << (parameter == getShift() ? "shift" : "multiplier") << " has element type "
                           << elementOf(parameter) << ", but only 'i32' is allowed (C2)";
    }
  }
  if (failed(checkRange(*this))) {
    return failure();
  }
  std::optional<SmallVector<double>> shifts = getConstantDoubles(getShift());
  if (shifts && llvm::any_of(*shifts, [](double shift) { return shift < 1 || shift > 62; })) {
    return emitOpError() << "a shift lies outside the range 1 to 62 (C5)";
  }
  Dims shape = shapeOf(getX());
  for (Value parameter : {getMultiplier(), getShift()}) {
    if (rankOf(parameter) > rankOf(getX()) || !broadcastInto(shape, shapeOf(parameter)) ||
        !sameDims(shape, shapeOf(getX()))) {
      return emitOpError() << "dims " << formatShape(shapeOf(parameter)) << " of "
                           << (parameter == getShift() ? "shift" : "multiplier") << " do not broadcast to "
                           << formatShape(shapeOf(getX())) << " of x (C3)";
    }
  }
  return addType(*this, shape, getTo(), types);
}

Value RequantizeOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  Long x = Long::extend(builder, loc, v[0]), multiplier = Long::extend(builder, loc, v[1]);
  Long shift = Long::extend(builder, loc, v[2]);
  Long y = elementOf(getX()).isInteger(64) ? scaleOnce(x, multiplier, shift) : scaleTwice(x, multiplier, shift);
  if (getZero() != 0) {
    y = y + x.lit(static_cast<int64_t>(getZero()));
  }
  return y.clamp(static_cast<int64_t>(getLow()), static_cast<int64_t>(getHigh()))
      .narrow(builder.getIntegerType(getTo().getIntOrFloatBitWidth()));
}
