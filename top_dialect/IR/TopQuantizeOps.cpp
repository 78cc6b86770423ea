//===- TopQuantizeOps.cpp - quantize and dequantize: inference, scalar form ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/ScalarEmitter.h"
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/IR/TopElementwiseOps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::top;
using namespace tessera::top::detail;

// Checks constraint C1 for one operand.
static LogicalResult checkF32(Operation *op, Value value, StringRef what) {
  if (elementOf(value).isF32()) {
    return success();
  }
  return op->emitOpError() << what << " has element type " << elementOf(value) << ", but only 'f32' is allowed (C1)";
}

// Checks constraint C2 for one operand; i32 is allowed only if `wide` is set.
static LogicalResult checkQuantized(Operation *op, Value value, StringRef what, bool wide) {
  Type type = elementOf(value);
  unsigned bits = type.isInteger() ? type.getIntOrFloatBitWidth() : 0;
  bool plain = (type.isSignlessInteger() || type.isUnsignedInteger()) && (bits == 8 || bits == 16);
  if (plain || (wide && type.isSignlessInteger(32))) {
    return success();
  }
  return op->emitOpError() << what << " has element type " << type << ", but only 'i8', 'ui8', 'i16'"
                           << (wide ? ", 'ui16' and 'i32'" : " and 'ui16'") << " are allowed (C2)";
}

// Checks constraint C4. With levels = 0, the bounds are those of the element type.
static LogicalResult checkLevels(Operation *op, uint64_t levels, Type type) {
  unsigned bits = type.getIntOrFloatBitWidth();
  if (levels == 0 || (!type.isUnsignedInteger() && bits < 64 && levels < (uint64_t(1) << (bits - 1)))) {
    return success();
  }
  return op->emitOpError() << "levels is " << static_cast<int64_t>(levels)
                           << ", but only 0 or a positive value of a signed element type is allowed, which is " << type
                           << " here (C4)";
}

// Infers a result with the dims of x (C3).
static LogicalResult inferLike(Operation *op, Value x, ValueRange parameters, Type element, Types &types) {
  Dims shape = shapeOf(x);
  for (auto [i, parameter] : llvm::enumerate(parameters)) {
    bool fits = rankOf(parameter) <= rankOf(x) && broadcastInto(shape, shapeOf(parameter));
    for (auto [dim, declared] : llvm::zip(shape, shapeOf(x))) {
      fits &= !declared.is(1) || dim.is(1);
    }
    if (!fits) {
      return op->emitOpError() << "dims " << formatShape(shapeOf(parameter)) << " of "
                               << (i == 0 ? "scale" : "zeroPoint") << " do not broadcast to " << formatShape(shapeOf(x))
                               << " of x (C3)";
    }
  }
  return addType(op, shape, element, types);
}

LogicalResult QuantizeOp::inferShapes(SmallVectorImpl<RankedTensorType> &types) {
  if (failed(checkF32(*this, getX(), "x")) || failed(checkF32(*this, getScale(), "scale")) ||
      failed(checkQuantized(*this, getZeroPoint(), "zeroPoint", false)) ||
      failed(checkLevels(*this, getLevels(), elementOf(getZeroPoint())))) {
    return failure();
  }
  return inferLike(*this, getX(), {getScale(), getZeroPoint()}, elementOf(getZeroPoint()), types);
}

LogicalResult DequantizeOp::inferShapes(SmallVectorImpl<RankedTensorType> &types) {
  if (failed(checkF32(*this, getScale(), "scale")) || failed(checkQuantized(*this, getX(), "x", true)) ||
      failed(checkLevels(*this, getLevels(), elementOf(getX())))) {
    return failure();
  }
  if (elementOf(getX()) != elementOf(getZeroPoint())) {
    return emitOpError() << "zeroPoint has element type " << elementOf(getZeroPoint()) << ", but x has "
                         << elementOf(getX()) << " (C2)";
  }
  return inferLike(*this, getX(), {getScale(), getZeroPoint()}, elementOf(getScale()), types);
}

Value QuantizeOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  Type type = elementOf(getZeroPoint());
  unsigned bits = type.getIntOrFloatBitWidth();
  bool isUnsigned = isUnsignedElement(type);
  ScalarEmitter e(builder, loc, isUnsigned);
  Value q = e.math<math::RoundEvenOp>(e.div(v[0], v[1]));
  q = e.add(q, e.cast(v[2], builder.getF32Type(), false));
  double levels = static_cast<double>(getLevels()), low = isUnsigned ? 0 : -std::exp2(bits - 1);
  q = levels != 0 ? e.clamp(q, -levels, levels) : e.clamp(q, low, low + std::exp2(bits) - 1);
  return e.cast(q, builder.getIntegerType(bits), isUnsigned);
}

Value DequantizeOp::emitScalar(OpBuilder &builder, Location loc, ValueRange v) {
  ScalarEmitter e(builder, loc, isUnsignedElement(elementOf(getX())));
  Type i32 = builder.getI32Type();
  Value centred = e.sub(e.cast(v[0], i32, false), e.cast(v[2], i32, false));
  // The difference is signed even if x is not.
  return e.mul(ScalarEmitter(builder, loc).cast(centred, builder.getF32Type(), false), v[1]);
}
