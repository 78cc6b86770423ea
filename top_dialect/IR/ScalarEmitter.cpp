//===- ScalarEmitter.cpp - Scalar arithmetic on arith and math ops ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/ScalarEmitter.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/TypeUtilities.h"
#include <limits>

using namespace mlir;
using namespace tessera::top::detail;

bool tessera::top::detail::isUnsignedElement(Type element) {
  return element.isUnsignedInteger() || element.isInteger(1);
}

static bool isFloat(Value x) { return isa<FloatType>(getElementTypeOrSelf(x.getType())); }

// Returns the type `like` with another element type.
static Type withElement(Type like, Type element) {
  auto shaped = dyn_cast<ShapedType>(like);
  return shaped ? Type(shaped.clone(element)) : element;
}

Value ScalarEmitter::constantOf(Type type, double value) {
  Type element = getElementTypeOrSelf(type);
  TypedAttr attr;
  if (isa<FloatType>(element)) {
    attr = FloatAttr::get(element, value);
  } else {
    attr = IntegerAttr::get(element, APInt(element.getIntOrFloatBitWidth(),
                                           static_cast<uint64_t>(static_cast<int64_t>(value)), false, true));
  }
  if (auto shaped = dyn_cast<ShapedType>(type)) {
    attr = DenseElementsAttr::get(shaped, Attribute(attr));
  }
  return arith::ConstantOp::create(builder, loc, attr);
}

Value ScalarEmitter::add(Value a, Value b) {
  return isFloat(a) ? Value(arith::AddFOp::create(builder, loc, a, b)) : arith::AddIOp::create(builder, loc, a, b);
}

Value ScalarEmitter::sub(Value a, Value b) {
  return isFloat(a) ? Value(arith::SubFOp::create(builder, loc, a, b)) : arith::SubIOp::create(builder, loc, a, b);
}

Value ScalarEmitter::mul(Value a, Value b) {
  return isFloat(a) ? Value(arith::MulFOp::create(builder, loc, a, b)) : arith::MulIOp::create(builder, loc, a, b);
}

Value ScalarEmitter::div(Value a, Value b) {
  if (isFloat(a)) {
    return arith::DivFOp::create(builder, loc, a, b);
  }
  return isUnsigned ? Value(arith::DivUIOp::create(builder, loc, a, b)) : arith::DivSIOp::create(builder, loc, a, b);
}

Value ScalarEmitter::max(Value a, Value b) {
  if (isFloat(a)) {
    return arith::MaximumFOp::create(builder, loc, a, b);
  }
  return isUnsigned ? Value(arith::MaxUIOp::create(builder, loc, a, b)) : arith::MaxSIOp::create(builder, loc, a, b);
}

Value ScalarEmitter::min(Value a, Value b) {
  if (isFloat(a)) {
    return arith::MinimumFOp::create(builder, loc, a, b);
  }
  return isUnsigned ? Value(arith::MinUIOp::create(builder, loc, a, b)) : arith::MinSIOp::create(builder, loc, a, b);
}

Value ScalarEmitter::neg(Value x) {
  return isFloat(x) ? Value(arith::NegFOp::create(builder, loc, x)) : sub(constant(x, 0), x);
}

Value ScalarEmitter::abs(Value x) {
  if (isFloat(x)) {
    return math::AbsFOp::create(builder, loc, x);
  }
  return isUnsigned ? x : Value(math::AbsIOp::create(builder, loc, x));
}

Value ScalarEmitter::select(Value cond, Value a, Value b) { return arith::SelectOp::create(builder, loc, cond, a, b); }

Value ScalarEmitter::compare(arith::CmpFPredicate onFloat, arith::CmpIPredicate onSigned,
                             arith::CmpIPredicate onUnsigned, Value a, Value b) {
  if (isFloat(a)) {
    return arith::CmpFOp::create(builder, loc, onFloat, a, b);
  }
  return arith::CmpIOp::create(builder, loc, isUnsigned ? onUnsigned : onSigned, a, b);
}

Value ScalarEmitter::less(Value a, Value b) {
  return compare(arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt, arith::CmpIPredicate::ult, a, b);
}

Value ScalarEmitter::lessEqual(Value a, Value b) {
  return compare(arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle, arith::CmpIPredicate::ule, a, b);
}

Value ScalarEmitter::equal(Value a, Value b) {
  return compare(arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq, arith::CmpIPredicate::eq, a, b);
}

Value ScalarEmitter::notEqual(Value a, Value b) {
  return compare(arith::CmpFPredicate::UNE, arith::CmpIPredicate::ne, arith::CmpIPredicate::ne, a, b);
}

Value ScalarEmitter::softplus(Value x) {
  Value tail = math<math::Log1pOp>(math<math::ExpOp>(neg(abs(x))));
  return add(max(x, constant(x, 0)), tail);
}

Value ScalarEmitter::sigmoid(Value x) {
  Value one = constant(x, 1);
  return div(one, add(one, math<math::ExpOp>(neg(x))));
}

Value ScalarEmitter::clamp(Value x, double lo, double hi) { return min(max(x, constant(x, lo)), constant(x, hi)); }

/// Converts a float to a 64-bit unsigned integer; negative numbers wrap around.
Value ScalarEmitter::castToUnsigned64(Value x) {
  Type to = withElement(x.getType(), builder.getI64Type());
  auto cut = [&](Value v) -> Value { return arith::FPToSIOp::create(builder, loc, to, v); };
  Value half = constant(x, 0x1p63);
  Value isHigh = arith::AndIOp::create(builder, loc, lessEqual(half, x), less(x, constant(x, 0x1p64)));
  Value low = cut(x), high = cut(sub(x, half));
  Value top = constant(low, static_cast<double>(std::numeric_limits<int64_t>::min()));
  return arith::SelectOp::create(builder, loc, isHigh, arith::XOrIOp::create(builder, loc, high, top), low);
}

Value ScalarEmitter::cast(Value x, Type element, bool toUnsigned) {
  Type from = getElementTypeOrSelf(x.getType());
  Type to = withElement(x.getType(), element);
  if (element.isInteger(1)) {
    return from.isInteger(1) ? x : notEqual(x, constant(x, 0));
  }
  if (from == element) {
    return x;
  }
  unsigned fromBits = from.getIntOrFloatBitWidth();
  unsigned toBits = element.getIntOrFloatBitWidth();
  if (isa<FloatType>(from) && isa<FloatType>(element)) {
    if (fromBits == toBits) { // f16 and bf16 are converted via f32
      return cast(cast(x, builder.getF32Type(), false), element, false);
    }
    return fromBits < toBits ? Value(arith::ExtFOp::create(builder, loc, to, x))
                             : arith::TruncFOp::create(builder, loc, to, x);
  }
  if (isa<FloatType>(from) && toUnsigned && toBits == 64) {
    return castToUnsigned64(from.getIntOrFloatBitWidth() < 32 ? cast(x, builder.getF32Type(), false) : x);
  }
  if (isa<FloatType>(from)) {
    // Narrow and unsigned targets go through a wider signed integer, so that negative numbers wrap
    // around as they do in numpy and in ONNX Runtime.
    unsigned viaBits = toBits < 32 ? 32 : toUnsigned || toBits == 64 ? 64 : 32;
    Type via = builder.getIntegerType(viaBits);
    Value wide = arith::FPToSIOp::create(builder, loc, withElement(x.getType(), via), x);
    return viaBits == toBits ? wide : Value(arith::TruncIOp::create(builder, loc, to, wide));
  }
  if (isa<FloatType>(element)) {
    return isUnsigned || fromBits == 1 ? Value(arith::UIToFPOp::create(builder, loc, to, x))
                                       : arith::SIToFPOp::create(builder, loc, to, x);
  }
  if (toBits < fromBits) {
    return arith::TruncIOp::create(builder, loc, to, x);
  }
  if (toBits == fromBits) {
    return x;
  }
  return isUnsigned || fromBits == 1 ? Value(arith::ExtUIOp::create(builder, loc, to, x))
                                     : arith::ExtSIOp::create(builder, loc, to, x);
}
