//===- FloatFormula.h - Formulas on registers of floats ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Wraps values of generated code in C++ operators, so that functions read as formulas. `Float` and `Int` are the types
// with which the compiler instantiates the templates of bmodel/numerics_float.h.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_KERNELS_FLOATFORMULA_H
#define TESSERA_CODEGEN_KERNELS_FLOATFORMULA_H

#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/Kernels/MathApprox.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

namespace tessera::kernels {

/// A value of one float type, scalar or vector.
struct Float {
  KernelBuilder *kb;
  mlir::Value v;

  mlir::Type type() const { return v.getType(); }
  Float make(mlir::Value value) const { return {kb, value}; }
  Float lit(double number) const { return make(kb->floatConstant(type(), number)); }
  bool isF64() const { return mlir::getElementTypeOrSelf(type()).isF64(); }
};

inline Float operator+(Float x, Float y) { return x.make(mlir::arith::AddFOp::create(x.kb->b, x.v, y.v)); }
inline Float operator-(Float x, Float y) { return x.make(mlir::arith::SubFOp::create(x.kb->b, x.v, y.v)); }
inline Float operator*(Float x, Float y) { return x.make(mlir::arith::MulFOp::create(x.kb->b, x.v, y.v)); }
inline Float operator/(Float x, Float y) { return x.make(mlir::arith::DivFOp::create(x.kb->b, x.v, y.v)); }
inline Float operator+(Float x, double y) { return x + x.lit(y); }
inline Float operator-(Float x, double y) { return x - x.lit(y); }
inline Float operator*(Float x, double y) { return x * x.lit(y); }
inline Float operator-(double x, Float y) { return y.lit(x) - y; }
inline Float operator/(double x, Float y) { return y.lit(x) / y; }
inline Float operator-(Float x) { return x.make(mlir::arith::NegFOp::create(x.kb->b, x.v)); }
inline Float fma(Float x, Float y, Float z) { return x.make(emitFma(*x.kb, x.v, y.v, z.v)); }
inline Float abs(Float x) { return x.make(mlir::math::AbsFOp::create(x.kb->b, x.v)); }
inline Float sqrt(Float x) { return x.make(mlir::math::SqrtOp::create(x.kb->b, x.v)); }
inline Float trunc(Float x) { return x.make(mlir::math::TruncOp::create(x.kb->b, x.v)); }
inline Float mulAdd(Float x, Float y, Float z) { return fma(x, y, z); }
inline Float roundEven(Float x) { return x.make(mlir::math::RoundEvenOp::create(x.kb->b, x.v)); }
inline Float copySign(Float x, Float sign) { return x.make(mlir::math::CopySignOp::create(x.kb->b, x.v, sign.v)); }

inline mlir::Value compare(mlir::arith::CmpFPredicate predicate, Float x, Float y) {
  return mlir::arith::CmpFOp::create(x.kb->b, predicate, x.v, y.v);
}
inline mlir::Value operator<(Float x, Float y) { return compare(mlir::arith::CmpFPredicate::OLT, x, y); }
inline mlir::Value operator>(Float x, Float y) { return compare(mlir::arith::CmpFPredicate::OGT, x, y); }
inline mlir::Value operator==(Float x, Float y) { return compare(mlir::arith::CmpFPredicate::OEQ, x, y); }
inline mlir::Value operator<(Float x, double y) { return x < x.lit(y); }
inline mlir::Value operator>(Float x, double y) { return x > x.lit(y); }
inline mlir::Value operator==(Float x, double y) { return x == x.lit(y); }
inline Float select(mlir::Value condition, Float x, Float y) {
  return x.make(mlir::arith::SelectOp::create(x.kb->b, condition, x.v, y.v));
}
/// Limits x to [low, high]; NaN stays NaN.
inline Float clamp(Float x, double low, double high) {
  Float upper = select(x > high, x.lit(high), x);
  return select(upper < low, x.lit(low), upper);
}

/// Evaluates coefficients[0] x^n + ... + coefficients[n].
inline Float horner(Float x, llvm::ArrayRef<double> coefficients) {
  Float sum = x.lit(coefficients.front());
  for (double coefficient : coefficients.drop_front()) {
    sum = fma(sum, x, x.lit(coefficient));
  }
  return sum;
}

//===----------------------------------------------------------------------===//
// Bit patterns of floats
//===----------------------------------------------------------------------===//

inline mlir::Type integerLike(mlir::Type type) {
  mlir::Type integer =
      mlir::IntegerType::get(type.getContext(), mlir::getElementTypeOrSelf(type).getIntOrFloatBitWidth());
  auto vector = llvm::dyn_cast<mlir::VectorType>(type);
  return vector ? mlir::Type(mlir::VectorType::get(vector.getShape(), integer)) : integer;
}
inline mlir::Value integer(KernelBuilder &kb, mlir::Type type, int64_t value) {
  mlir::TypedAttr attribute = kb.b.getIntegerAttr(mlir::getElementTypeOrSelf(type), value);
  if (auto vector = llvm::dyn_cast<mlir::VectorType>(type)) {
    attribute = mlir::DenseElementsAttr::get(vector, mlir::Attribute(attribute));
  }
  return mlir::arith::ConstantOp::create(kb.b, attribute);
}
inline mlir::Value bits(Float x) { return mlir::arith::BitcastOp::create(x.kb->b, integerLike(x.type()), x.v); }
inline Float fromBits(Float like, mlir::Value value) {
  return like.make(mlir::arith::BitcastOp::create(like.kb->b, like.type(), value));
}
inline unsigned mantissaBits(Float x) { return x.isF64() ? 52 : 23; }
inline int64_t exponentBias(Float x) { return x.isF64() ? 1023 : 127; }

/// Returns 2^n for an integer n in the exponent range of normal numbers.
inline Float powerOfTwo(Float like, mlir::Value n) {
  KernelBuilder &kb = *like.kb;
  mlir::Value biased = mlir::arith::AddIOp::create(kb.b, n, integer(kb, n.getType(), exponentBias(like)));
  return fromBits(like, mlir::arith::ShLIOp::create(kb.b, biased, integer(kb, n.getType(), mantissaBits(like))));
}

/// Returns x * 2^n for an integral float n. Scales in two steps, so that results may be subnormal or overflow.
inline Float scaleByPower(Float x, Float n) {
  KernelBuilder &kb = *x.kb;
  mlir::Value whole = mlir::arith::FPToSIOp::create(kb.b, integerLike(x.type()), n.v);
  mlir::Value half = mlir::arith::ShRSIOp::create(kb.b, whole, integer(kb, whole.getType(), 1));
  mlir::Value rest = mlir::arith::SubIOp::create(kb.b, whole, half);
  return x * powerOfTwo(x, half) * powerOfTwo(x, rest);
}

/// Splits a positive finite x = mantissa 2^exponent with mantissa in [sqrt(1/2), sqrt(2)).
inline std::pair<Float, Float> splitExponent(Float x) {
  KernelBuilder &kb = *x.kb;
  double lift = x.isF64() ? 0x1p54 : 0x1p25; // scales subnormals up to normal numbers
  mlir::Value small = x < (x.isF64() ? 0x1p-1022 : 0x1p-126);
  Float normal = select(small, x * lift, x);
  mlir::Value raw = bits(normal);
  mlir::Type type = raw.getType();
  // Subtracting the bits of sqrt(1/2) moves the point at which the exponent changes from 1 to sqrt(1/2).
  mlir::Value base = integer(kb, type, x.isF64() ? 0x3fe6a09e667f3bcd : 0x3f3504f3);
  mlir::Value shifted = mlir::arith::SubIOp::create(kb.b, raw, base);
  mlir::Value exponent = mlir::arith::ShRSIOp::create(kb.b, shifted, integer(kb, type, mantissaBits(x)));
  mlir::Value scaled = mlir::arith::ShLIOp::create(kb.b, exponent, integer(kb, type, mantissaBits(x)));
  Float mantissa = fromBits(x, mlir::arith::SubIOp::create(kb.b, raw, scaled));
  Float count = x.make(mlir::arith::SIToFPOp::create(kb.b, x.type(), exponent));
  return {mantissa, select(small, count - (x.isF64() ? 54.0 : 25.0), count)};
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// An integer as wide as the float whose bits it holds.
struct Int {
  KernelBuilder *kb;
  mlir::Value v;
};
template <typename Op>
inline Int make(Int x, mlir::Value y) {
  return {x.kb, Op::create(x.kb->b, x.v, y)};
}
inline Int operator+(Int x, Int y) { return make<mlir::arith::AddIOp>(x, y.v); }
inline Int operator-(Int x, Int y) { return make<mlir::arith::SubIOp>(x, y.v); }
inline Int operator+(Int x, int32_t y) { return make<mlir::arith::AddIOp>(x, integer(*x.kb, x.v.getType(), y)); }
inline Int operator-(Int x, int32_t y) { return make<mlir::arith::SubIOp>(x, integer(*x.kb, x.v.getType(), y)); }
inline Int operator<<(Int x, int by) { return make<mlir::arith::ShLIOp>(x, integer(*x.kb, x.v.getType(), by)); }
inline Int operator>>(Int x, int by) { return make<mlir::arith::ShRSIOp>(x, integer(*x.kb, x.v.getType(), by)); }
inline Int operator*(Int x, Int y) { return make<mlir::arith::MulIOp>(x, y.v); }
inline Int operator&(Int x, Int y) { return make<mlir::arith::AndIOp>(x, y.v); }
inline Int operator|(Int x, Int y) { return make<mlir::arith::OrIOp>(x, y.v); }
inline Int operator&(Int x, int64_t y) { return make<mlir::arith::AndIOp>(x, integer(*x.kb, x.v.getType(), y)); }
/// Shifts right, filling with zeros.
inline Int shiftDown(Int x, Int by) { return make<mlir::arith::ShRUIOp>(x, by.v); }
inline Int shiftDown(Int x, int by) { return make<mlir::arith::ShRUIOp>(x, integer(*x.kb, x.v.getType(), by)); }
inline mlir::Value operator!=(Int x, int64_t y) {
  return mlir::arith::CmpIOp::create(x.kb->b, mlir::arith::CmpIPredicate::ne, x.v, integer(*x.kb, x.v.getType(), y));
}
inline Int select(mlir::Value condition, Int x, Int y) {
  return {x.kb, mlir::arith::SelectOp::create(x.kb->b, condition, x.v, y.v)};
}
inline Int toInt(Float x) { return {x.kb, mlir::arith::FPToSIOp::create(x.kb->b, integerLike(x.type()), x.v)}; }
inline Int toBits(Float x) { return {x.kb, bits(x)}; }
inline Float fromBits(Float like, Int x) { return fromBits(like, x.v); }
inline Float toFloat(Float like, Int x) { return like.make(mlir::arith::SIToFPOp::create(x.kb->b, like.type(), x.v)); }

/// Returns 1 / x for a normal x whose inverse is normal. If bit-exactness is not required and the target has a 14-bit
/// reciprocal estimate, emits the estimate and one Newton step.
inline Float inverse(Float x) {
  bool estimate = !x.kb->exact && x.kb->target.hasMasks() && llvm::isa<mlir::VectorType>(x.type()) && !x.isF64();
  auto flags = estimate ? mlir::arith::FastMathFlags::arcp : mlir::arith::FastMathFlags::none;
  return x.make(mlir::arith::DivFOp::create(x.kb->b, x.lit(1.0).v, x.v, flags));
}

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_FLOATFORMULA_H
