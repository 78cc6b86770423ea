//===- MathApprox.cpp - Math functions as instructions --------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/MathApprox.h"

#include "bmodel/numerics_float.h"
#include "codegen/Kernels/Dequantise.h"
#include "codegen/Kernels/FarArguments.h"
#include "codegen/Kernels/Quotient.h"
#include "codegen/Kernels/Reduction.h"
#include "codegen/Kernels/Requantise.h"
#include "device_dialect/IR/ScalarPatterns.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

//===----------------------------------------------------------------------===//
// f32 functions: those of bmodel/numerics_float.h, on registers
//===----------------------------------------------------------------------===//

/// Replaces |result|, the logarithm of |x|, where |x| is infinite, zero, negative or NaN.
Float logSpecials(Float x, Float result) {
  double infinity = std::numeric_limits<double>::infinity();
  result = select(x == infinity, x, result);
  result = select(x == 0.0, x.lit(-infinity), result);
  Value invalid = compare(arith::CmpFPredicate::ULT, x, x.lit(0.0)); // negative or NaN
  return select(invalid, x.lit(std::numeric_limits<double>::quiet_NaN()), result);
}

//===----------------------------------------------------------------------===//
// f64 functions, after Cephes
//===----------------------------------------------------------------------===//

Float expF64(Float x) {
  Float bounded = clamp(x, -746.0, 710.0);
  Float n = roundEven(bounded * 1.4426950408889634074);
  Float r = bounded - n * 6.93145751953125e-1 - n * 1.42860682030941723212e-6;
  Float square = r * r;
  Float p = r * horner(square, {1.26177193074810590878e-4, 3.02994407707441961300e-2, 9.99999999999999999910e-1});
  Float q = horner(square, {3.00198505138664455042e-6, 2.52448340349684104192e-3, 2.27265548208155028766e-1, 2.0});
  return scaleByPower((p / (q - p)) * 2.0 + 1.0, n);
}

Float logF64(Float x) {
  auto [mantissa, exponent] = splitExponent(x);
  Float z = mantissa - 1.0;
  Float p = horner(z, {1.01875663804580931796e-4, 4.97494994976747001425e-1, 4.70579119878881725854e0,
                       1.44989225341610930846e1, 1.79368678507819816313e1, 7.70838733755885391666e0});
  Float q = horner(z, {1.0, 1.12873587189167450590e1, 4.52279145837532221105e1, 8.29875266912776603211e1,
                       7.11544750618563894466e1, 2.31251620126765340583e1});
  Float y = z * (z * z * p / q) - exponent * 2.121944400546905827679e-4 - z * z * 0.5;
  return logSpecials(x, z + y + exponent * 0.693359375);
}

Float exp(Float x) { return x.isF64() ? expF64(x) : bmodel::numerics::exp(x); }
Float log(Float x) { return x.isF64() ? logF64(x) : bmodel::numerics::log(x); }

/// Computes e^x - 1 without cancellation (W. Kahan).
Float expm1(Float x) {
  Float u = exp(x);
  Float result = (u - 1.0) * x / log(u);
  result = select(u == 1.0, x, result);
  result = select(u - 1.0 == -1.0, x.lit(-1.0), result);
  return select(u == std::numeric_limits<double>::infinity(), u, result);
}

Float log1p(Float x) {
  Float u = x + 1.0;
  Float result = select(u == 1.0, x, log(u) * x / (u - 1.0));
  return select(u == std::numeric_limits<double>::infinity(), u, result);
}

Float tanh(Float x) {
  if (!x.isF64()) {
    return bmodel::numerics::tanh(x);
  }
  Float e = expm1(clamp(abs(x) * 2.0, 0.0, 80.0));
  return copySign(e / (e + 2.0), x);
}

/// Computes x P(x^2) for |x| < 1, otherwise 1 - e^(-t^2) Q((t - 3) / (t + 3)) with t = |x|. The polynomials are fitted
/// at Chebyshev points.
Float erfF64(Float x) {
  Float near = x * horner(x * x, {-7.795898827002142e-10, 1.3720064546777686e-08, -1.6208483801871705e-07,
                                  1.6447424703317362e-06, -1.492473690741966e-05, 0.00012055294904839707,
                                  -0.0008548325975389692, 0.0052239776071164225, -0.02686617064323777,
                                  0.11283791670945006, -0.37612638903183543, 1.1283791670955126});
  Float t = clamp(abs(x), 0.0, 6.0); // beyond, erf is 1
  Float q = horner((t - 3.0) / (t + 3.0),
                   {3.381355142042904e-09, 1.2755818949624478e-06, 2.0135111426447427e-06, -8.00978093907608e-06,
                    -1.2845780030775907e-05, 6.406279226046039e-05, 4.525434558991009e-05, -0.0005970624964924544,
                    0.0007077464666941425, 0.004269136356961225, -0.024392499318915004, 0.07166583719747308,
                    -0.15011593650077898, 0.24560380171233487, -0.3262335600430372, 0.17900115118138996});
  return select(abs(x) < 1.0, near, copySign(1.0 - expF64(-(t * t)) * q, x));
}

struct SinCos {
  Float sin, cos;
};

/// Computes sine and cosine. |isSingle|: x is a widened f32.
SinCos sinCos(Float x, bool isSingle) {
  auto [quadrant, r] = reduceByHalfPi(x, isSingle);
  Float s = r * r;
  Float sine = fma(r * s,
                   horner(s, {1.58962301576546568060e-10, -2.50507477628578072866e-8, 2.75573136213857245213e-6,
                              -1.98412698295895385996e-4, 8.33333333332211858878e-3, -1.66666666666666307295e-1}),
                   r);
  Float cosine = 1.0 - s * 0.5 +
                 s * s *
                     horner(s, {-1.13585365213876817300e-11, 2.08757008419747316778e-9, -2.75573141792967388112e-7,
                                2.48015872888517045348e-5, -1.38888888888730564116e-3, 4.16666666666665929218e-2});
  mlir::Value odd = (quadrant & 1) != 0;
  sine = select(x == 0.0, x, sine); // -0 stays -0
  Float sinBase = select(odd, cosine, sine), cosBase = select(odd, sine, cosine);
  return {select((quadrant & 2) != 0, -sinBase, sinBase), select(((quadrant + 1) & 2) != 0, -cosBase, cosBase)};
}

Float atan(Float x) {
  Float t = abs(x);
  Value large = t > 2.41421356237309504880, middle = t > 0.66;
  Float reduced = select(large, -1.0 / t, select(middle, (t - 1.0) / (t + 1.0), t));
  Float base = select(large, t.lit(1.57079632679489661923), select(middle, t.lit(0.78539816339744830962), t.lit(0.0)));
  Float z = reduced * reduced;
  Float p = horner(z, {-8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1,
                       -1.228866684490136173410e2, -6.485021904942025371773e1});
  Float q = horner(z, {1.0, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2,
                       4.853903996359136964868e2, 1.945506571482613964425e2});
  return copySign(base + fma(z * p / q, reduced, reduced), x);
}

Float atan2(Float y, Float x) {
  constexpr double pi = 3.14159265358979323846;
  Value bothZero = arith::AndIOp::create(x.kb->b, x == 0.0, y == 0.0);
  double infinity = std::numeric_limits<double>::infinity();
  Value bothInfinite = arith::AndIOp::create(x.kb->b, abs(x) == infinity, abs(y) == infinity);
  Float ratio = select(bothInfinite, x.lit(1.0), abs(y) / abs(x));
  Float angle = atan(select(bothZero, x.lit(0.0), ratio));
  Value negative = copySign(x.lit(1.0), x) < 0.0;
  return copySign(select(negative, pi - angle, angle), y);
}

/// Computes x^n for a whole n in [0, 32) by multiplications. These are exact if the result is a double; a power of an
/// f32 halfway between two f32 numbers is therefore rounded to even.
Float smallPower(Float x, Float n) {
  Float result = n.lit(1.0), square = x, rest = n;
  for (int bit = 0; bit < 5; ++bit) {
    Float half = trunc(rest * 0.5);
    result = select(rest - half * 2.0 > 0.5, result * square, result);
    square = square * square, rest = half;
  }
  return result;
}

/// Computes x^y for f64, with the special cases of IEEE pow.
Float powF64(Float x, Float y) {
  KernelBuilder &kb = *x.kb;
  Float magnitude = exp(y * log(abs(x)));
  Value integral = roundEven(y) == y;
  Float half = y * 0.5;
  Value even = roundEven(half) == half;
  Value odd = arith::AndIOp::create(kb.b, integral, arith::XOrIOp::create(kb.b, even, integer(kb, even.getType(), 1)));
  Float result = select(odd, copySign(magnitude, x), magnitude);
  double infinity = std::numeric_limits<double>::infinity();
  Value fraction = arith::XOrIOp::create(kb.b, integral, integer(kb, even.getType(), 1));
  Value finite = abs(x) < infinity;
  Value invalid = arith::AndIOp::create(kb.b, arith::AndIOp::create(kb.b, x < 0.0, fraction), finite);
  result = select(invalid, x.lit(std::numeric_limits<double>::quiet_NaN()), result);
  Float size = abs(y), few = smallPower(x, clamp(size, 0.0, 31.0));
  Value isSmall = arith::AndIOp::create(kb.b, integral, size < 32.0);
  result = select(isSmall, select(y < 0.0, 1.0 / few, few), result);
  // (-1)^(+-inf) is 1, as are 1^y (even for NaN) and x^0.
  Value minusOne = arith::AndIOp::create(kb.b, x == -1.0, abs(y) == infinity);
  Value one = arith::OrIOp::create(kb.b, arith::OrIOp::create(kb.b, x == 1.0, y == 0.0), minusOne);
  return select(one, x.lit(1.0), result);
}

/// Rounds halves away from zero: 1.5 -> 2, -1.5 -> -2; 0.49999997 -> 0.
Float roundAway(Float x) {
  Float down = trunc(x);
  Float rest = abs(x - down);
  Value up = compare(arith::CmpFPredicate::OGE, rest, x.lit(0.5));
  return select(up, down + copySign(x.lit(1.0), x), down);
}

//===----------------------------------------------------------------------===//
// Expansion of ops
//===----------------------------------------------------------------------===//

Type f64Like(Type type) {
  Type f64 = Float64Type::get(type.getContext());
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(VectorType::get(vector.getShape(), f64)) : f64;
}

/// Computes |function| in f64 and rounds the result to the type of the operands.
template <typename Function, typename... Operands>
Value inDouble(KernelBuilder &kb, Function function, Value first, Operands... rest) {
  Type type = first.getType(), wide = f64Like(type);
  auto widen = [&](Value value) -> Float {
    return {&kb, wide == type ? value : Value(arith::ExtFOp::create(kb.b, wide, value))};
  };
  Float result = function(widen(first), widen(rest)...);
  return wide == type ? result.v : Value(arith::TruncFOp::create(kb.b, type, result.v));
}

Float sinh(Float x) {
  Float e = expm1(abs(x));
  Float moderate = (e + e / (e + 1.0)) * 0.5;
  // Beyond 30, e^x / 2 is computed as e^(x - ln 2), because e^x may overflow where half of it does not.
  Float large = exp(abs(x) - 0.693147180559945309417);
  return copySign(select(abs(x) > 30.0, large, moderate), x);
}
Float cosh(Float x) {
  Float e = exp(abs(x) - 0.693147180559945309417);
  return e + 0.25 / e;
}
Float asinh(Float x) {
  Float t = abs(x);
  Float moderate = log1p(t + t * t / (sqrt(t * t + 1.0) + 1.0));
  return copySign(select(t > 1e9, log(t) + 0.693147180559945309417, moderate), x);
}
Float acosh(Float x) {
  Float moderate = log1p((x - 1.0) + sqrt((x - 1.0) * (x + 1.0)));
  Float result = select(x > 1e9, log(x) + 0.693147180559945309417, moderate);
  return select(x < 1.0, x.lit(std::numeric_limits<double>::quiet_NaN()), result);
}
Float atanh(Float x) {
  Float t = abs(x), result = log1p((t + t) / (1.0 - t)) * 0.5;
  return select(t > 1.0, x.lit(std::numeric_limits<double>::quiet_NaN()), copySign(result, x));
}
Float asin(Float x) { return atan(x / sqrt((1.0 - x) * (x + 1.0))); }
Float acos(Float x) { return atan(sqrt((1.0 - x) / (x + 1.0))) * 2.0; }
Float cbrt(Float x) { return copySign(select(x == 0.0, abs(x), exp(log(abs(x)) * (1.0 / 3.0))), x); }

/// Returns the value if it is the same constant in all lanes.
std::optional<double> constantFloat(Value value) {
  Attribute attribute;
  if (!matchPattern(value, m_Constant(&attribute))) {
    return std::nullopt;
  }
  if (auto number = dyn_cast<FloatAttr>(attribute)) {
    return number.getValueAsDouble();
  }
  auto elements = dyn_cast<DenseFPElementsAttr>(attribute);
  return elements && elements.isSplat() ? std::optional(elements.getSplatValue<APFloat>().convertToDouble())
                                        : std::nullopt;
}

/// Computes the maximum or minimum; NaN wins. The selects map to maxps and minps of SSE, which return either of -0 and
/// +0; |ordersZeros| adds code to order them, for results in which the sign of zero is visible.
Float extremum(Float x, Float y, bool smallest, bool ordersZeros) {
  auto better = [&](Float p, Float q) { return smallest ? p < q : p > q; };
  if (constantFloat(x.v)) {
    std::swap(x, y);
  }
  Float chosen = select(better(y, x), y, x); // y if it is better, x if either is NaN
  if (std::optional<double> constant = constantFloat(y.v); constant && !std::isnan(*constant)) {
    bool wins = ordersZeros && *constant == 0 && std::signbit(*constant) == smallest; // against the other zero
    auto least = smallest ? arith::CmpFPredicate::OGE : arith::CmpFPredicate::OLE;
    return wins ? select(compare(least, x, y), y, x) : chosen;
  }
  chosen = select(compare(arith::CmpFPredicate::UNO, y, y), y, chosen);
  return ordersZeros ? Float{x.kb, orderZeros(*x.kb, x.v, y.v, chosen.v, smallest)} : chosen;
}

Value expandPow(KernelBuilder &kb, Value base, Value exponent) {
  Float x{&kb, base};
  if (std::optional<double> constant = constantFloat(exponent)) {
    if (*constant == 1.0) {
      return base;
    }
    if (*constant == 2.0) {
      return (x * x).v;
    }
    if (*constant == 3.0) {
      return (x * x * x).v;
    }
    if (*constant == -1.0) {
      return (1.0 / x).v;
    }
  }
  return inDouble(kb, powF64, base, exponent);
}

/// Computes an integer power by squaring, for exponents of any size; negative exponents give 1 / x^n, truncated.
Value expandIntegerPow(KernelBuilder &kb, Value x, Value y) {
  ImplicitLocOpBuilder &b = kb.b;
  Type type = x.getType();
  Value zero = integer(kb, type, 0), one = integer(kb, type, 1);
  Value result = one, power = x, rest = y;
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  // An exponent of 2^6 or more overflows for every base but 0, 1 and -1, for which these bits suffice.
  for (unsigned i = 0; i < std::min(width, 7u); ++i) {
    Value bit = arith::AndIOp::create(b, rest, one);
    Value set = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, bit, zero);
    result = arith::SelectOp::create(b, set, arith::MulIOp::create(b, result, power), result);
    power = arith::MulIOp::create(b, power, power);
    rest = arith::ShRUIOp::create(b, rest, one);
  }
  Value negative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, y, zero);
  Value isOne = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, one);
  Value isMinusOne = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, integer(kb, type, -1));
  Value unit = arith::OrIOp::create(b, isOne, isMinusOne);
  Value reciprocal = arith::SelectOp::create(b, unit, result, zero);
  return arith::SelectOp::create(b, negative, reciprocal, result);
}

/// Division that never traps: x / 0 = x % 0 = 0, and INT_MIN / -1 wraps.
template <typename Division, bool isSigned, bool isRemainder>
Value safeDivision(KernelBuilder &kb, Value x, Value y) {
  ImplicitLocOpBuilder &b = kb.b;
  Type type = x.getType();
  Value one = integer(kb, type, 1);
  auto equals = [&](int64_t value) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, y, integer(kb, type, value));
  };
  Value isZero = equals(0);
  Value divisor = arith::SelectOp::create(b, isZero, one, y);
  Value zero = integer(kb, type, 0);
  if (!isSigned) {
    Value result = Division::create(b, x, divisor);
    return arith::SelectOp::create(b, isZero, zero, result);
  }
  Value isMinusOne = equals(-1);
  divisor = arith::SelectOp::create(b, isMinusOne, one, divisor);
  Value result = Division::create(b, x, divisor);
  if (isRemainder) {
    return result; // division by 1 leaves 0, the result for -1 and 0
  }
  Value negated = arith::SubIOp::create(b, zero, x);
  return arith::SelectOp::create(b, isZero, zero, arith::SelectOp::create(b, isMinusOne, negated, result));
}

/// Computes the quotient rounded down (or up) from the truncating division.
Value roundedDivision(KernelBuilder &kb, Value x, Value y, bool up) {
  ImplicitLocOpBuilder &b = kb.b;
  Type type = x.getType();
  Value zero = integer(kb, type, 0), one = integer(kb, type, 1);
  Value quotient = safeDivision<arith::DivSIOp, true, false>(kb, x, y);
  Value rest = arith::SubIOp::create(b, x, arith::MulIOp::create(b, quotient, y));
  Value inexact = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, rest, zero);
  Value signs = arith::XOrIOp::create(b, x, y);
  auto predicate = up ? arith::CmpIPredicate::sge : arith::CmpIPredicate::slt;
  Value adjust = arith::AndIOp::create(b, inexact, arith::CmpIOp::create(b, predicate, signs, zero));
  Value other = up ? Value(arith::AddIOp::create(b, quotient, one)) : Value(arith::SubIOp::create(b, quotient, one));
  return arith::SelectOp::create(b, adjust, other, quotient);
}

} // namespace

/// Computes x * y + z with one rounding on targets without FMA. The product is exact in f64; the sum with z is rounded
/// to odd there, so that the rounding to f32 still sees on which side of a tie it lies (S. Boldo, G. Melquiond).
static Value emulateFma(KernelBuilder &kb, Value x, Value y, Value z) {
  ImplicitLocOpBuilder &b = kb.b;
  Type wide = f64Like(x.getType());
  Float product{&kb, arith::MulFOp::create(b, arith::ExtFOp::create(b, wide, x), arith::ExtFOp::create(b, wide, y))};
  Float addend{&kb, arith::ExtFOp::create(b, wide, z)}, sum = product + addend;
  // The rounding error of the sum (D. Knuth); NaN if there are infinities.
  Float part = sum - product, lost = (product - (sum - part)) + (addend - part);
  Value raw = bits(sum);
  auto literal = [&](int64_t value) { return integer(kb, raw.getType(), value); };
  Value even =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, arith::AndIOp::create(b, raw, literal(1)), literal(0));
  Value adjust = arith::AndIOp::create(b, even, compare(arith::CmpFPredicate::ONE, lost, lost.lit(0.0)));
  // The odd neighbour on the side of the error.
  Value sameSign =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sge, arith::XOrIOp::create(b, raw, bits(lost)), literal(0));
  Value step = arith::SelectOp::create(b, sameSign, literal(1), literal(-1));
  Value odd = arith::SelectOp::create(b, adjust, arith::AddIOp::create(b, raw, step), raw);
  return arith::TruncFOp::create(b, x.getType(), fromBits(sum, odd).v);
}

Value emitFma(KernelBuilder &kb, Value x, Value y, Value z) {
  bool single = getElementTypeOrSelf(x.getType()).isF32();
  // f64 functions are finally rounded to f32; for them, exact only means that all variants compute the same.
  if (kb.target.hasFma() && (single || !kb.exact)) {
    return math::FmaOp::create(kb.b, x, y, z);
  }
  if (kb.exact && single) {
    return emulateFma(kb, x, y, z);
  }
  return arith::AddFOp::create(kb.b, arith::MulFOp::create(kb.b, x, y), z);
}

Value emitExactFma(KernelBuilder &kb, Value x, Value y, Value z) {
  return kb.target.hasFma() ? Value(math::FmaOp::create(kb.b, x, y, z)) : emulateFma(kb, x, y, z);
}

Value emitMultiplyAdd(KernelBuilder &kb, Value x, Value y, Value sum) {
  if (isa<FloatType>(getElementTypeOrSelf(sum.getType()))) {
    return kb.target.hasFma() ? Value(math::FmaOp::create(kb.b, x, y, sum))
                              : Value(arith::AddFOp::create(kb.b, arith::MulFOp::create(kb.b, x, y), sum));
  }
  return arith::AddIOp::create(kb.b, arith::MulIOp::create(kb.b, x, y), sum);
}

Value emitExp(KernelBuilder &kb, Value x) { return exp(Float{&kb, x}).v; }
Value emitLog(KernelBuilder &kb, Value x) { return log(Float{&kb, x}).v; }
Value emitTanh(KernelBuilder &kb, Value x) { return tanh(Float{&kb, x}).v; }
Value emitSigmoid(KernelBuilder &kb, Value x) {
  Float value{&kb, x};
  return value.isF64() ? (1.0 / (exp(-value) + 1.0)).v : bmodel::numerics::sigmoid(value).v;
}
Value emitExpOfNegative(KernelBuilder &kb, Value x) {
  Float value{&kb, x};
  return value.isF64() ? exp(value).v : bmodel::numerics::expOfNegative(value).v;
}

/// Returns x if |op| is 1 + erf(x) on f32, as in GELU; otherwise null.
static Value matchOnePlusErf(arith::AddFOp op) {
  if (!op || !op.getType().isF32()) {
    return {};
  }
  Value other = matchPattern(op.getRhs(), m_OneFloat())   ? op.getLhs()
                : matchPattern(op.getLhs(), m_OneFloat()) ? op.getRhs()
                                                          : Value();
  auto erf = other ? other.getDefiningOp<math::ErfOp>() : math::ErfOp();
  return erf ? erf.getOperand() : Value();
}

/// Computes 1 + erf(x) from 1 - erf(t) = 2^(t Q(t)) with t = |x|, within 1.4e-7. This is half the work of erf, whose
/// precision for small values would be lost beside 1. Beyond 4.2, where 1 - erf is below 3e-9, the result is exactly 0
/// or 2, because it may be multiplied by a large factor.
static Value emitOnePlusErf(KernelBuilder &kb, Value argument) {
  constexpr double kEnd = 4.2;
  Float x{&kb, argument}, t = abs(x);
  // The coefficients minimise the error of 2^(t Q(t)) on [0, kEnd] and of 2^f on [-1/2, 1/2].
  Float power =
      t * bmodel::numerics::horner(t, t.lit(-4.535860717e-05), 4.455076996e-04, -1.489441842e-03, -7.746294141e-04,
                                   2.825368010e-02, -1.484816223e-01, -9.184163809e-01, -1.627908587);
  Float shifted = power + t.lit(0x1.8p23), f = power - (shifted - t.lit(0x1.8p23));
  Float rest = bmodel::numerics::horner(f, f.lit(1.535336050e-04), 1.339887502e-03, 9.618436918e-03, 5.550332367e-02,
                                        2.402264774e-01, 6.931471825e-01, 1.0);
  Float tail = rest * fromBits(x, (toBits(shifted) << 23) + 0x3f800000);
  tail = select(t > kEnd, t.lit(0.0), tail);
  return select(x < 0.0, tail, 2.0 - tail).v;
}

Value expandPattern(KernelBuilder &kb, Operation &op, const IRMapping &mapping) {
  if (Value x = device::matchSigmoid(dyn_cast<arith::DivFOp>(op))) {
    return emitSigmoid(kb, mapping.lookup(x));
  }
  bool isProcessor = !kb.target.tileIsThread;
  if (Value x = !kb.exact && isProcessor ? matchOnePlusErf(dyn_cast<arith::AddFOp>(op)) : Value()) {
    return emitOnePlusErf(kb, mapping.lookup(x));
  }
  if (auto divide = dyn_cast<arith::DivFOp>(op)) {
    Value x = isProcessor ? withoutZeroClamp(divide) : divide.getLhs();
    return emitQuantisedQuotient(kb, divide, mapping.lookup(x), mayBeNaN(x));
  }
  if (auto product = dyn_cast<arith::MulFOp>(op); product && isProcessor) {
    return emitDequantised(kb, product, mapping);
  }
  std::optional<Requantise> end = isa<arith::TruncIOp>(op) ? matchRequantise(op.getResult(0)) : std::nullopt;
  return end ? emitRequantise(kb, *end, mapping.lookup(end->value)) : Value();
}

Value emitErfForBf16(KernelBuilder &kb, Value x) {
  // An odd polynomial with the least error against erf on [0, kOne], scaled to reach 1 there. Beyond kOne the result
  // must be exactly 1, because 1 - erf may be multiplied by a large factor.
  constexpr double kOne = 3.1;
  Float bounded = bmodel::numerics::clamp(Float{&kb, x}, -kOne, kOne), square = bounded * bounded;
  Float p =
      bmodel::numerics::horner(square, square.lit(3.290078965e-08), -1.656996915e-06, 3.673379979e-05, -4.767471110e-04,
                               4.081861582e-03, -2.471655048e-02, 1.105712503e-01, -3.750254512e-01, 1.128245234e+00);
  return bmodel::numerics::clamp(p * bounded, -1.0, 1.0).v;
}

/// Computes a float to the power of an integer, in f64.
static Value expandPowOfInteger(KernelBuilder &kb, Value x, Value n) {
  Type type = x.getType(), doubles = f64Like(type);
  Value exponent = arith::SIToFPOp::create(kb.b, doubles, n);
  Value base = type == doubles ? x : Value(arith::ExtFOp::create(kb.b, doubles, x));
  Value power = powF64(Float{&kb, base}, Float{&kb, exponent}).v;
  return type == doubles ? power : Value(arith::TruncFOp::create(kb.b, type, power));
}

Value expandMath(KernelBuilder &kb, Operation *op, ValueRange operands) {
  auto arg = [&](unsigned i) { return Float{&kb, operands[i]}; };
  auto wide = [&](Float (*function)(Float)) { return inDouble(kb, function, operands[0]); };
  bool isSingle = !operands.empty() && !getElementTypeOrSelf(operands[0].getType()).isF64();
  bool ordersZeros = kb.exact && op->getNumResults() == 1 && device::showsSignOfZero(op->getResult(0));
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](math::ExpOp) { return exp(arg(0)).v; })
      .Case([&](math::LogOp) { return log(arg(0)).v; })
      .Case([&](math::TanhOp) { return tanh(arg(0)).v; })
      .Case([&](math::ErfOp) { return (arg(0).isF64() ? erfF64(arg(0)) : bmodel::numerics::erf(arg(0))).v; })
      .Case([&](math::ErfcOp erfc) {
        return (1.0 - Float{&kb, expandMath(kb, math::ErfOp::create(kb.b, operands[0]), operands)}).v;
      })
      .Case([&](math::Exp2Op) { return wide([](Float x) { return exp(x * 0.693147180559945309417); }); })
      .Case([&](math::ExpM1Op) { return wide(expm1); })
      .Case([&](math::Log2Op) { return wide([](Float x) { return log(x) * 1.44269504088896340736; }); })
      .Case([&](math::Log10Op) { return wide([](Float x) { return log(x) * 0.434294481903251827651; }); })
      .Case([&](math::Log1pOp) { return kb.exact && isSingle ? bmodel::numerics::log1p(arg(0)).v : wide(log1p); })
      .Case([&](math::SinOp) { return inDouble(kb, [=](Float x) { return sinCos(x, isSingle).sin; }, operands[0]); })
      .Case([&](math::CosOp) { return inDouble(kb, [=](Float x) { return sinCos(x, isSingle).cos; }, operands[0]); })
      .Case([&](math::TanOp) {
        auto tangent = [=](Float x) {
          SinCos both = sinCos(x, isSingle);
          return both.sin / both.cos;
        };
        return inDouble(kb, tangent, operands[0]);
      })
      .Case([&](math::SinhOp) { return wide(sinh); })
      .Case([&](math::CoshOp) { return wide(cosh); })
      .Case([&](math::AsinhOp) { return wide(asinh); })
      .Case([&](math::AcoshOp) { return wide(acosh); })
      .Case([&](math::AtanhOp) { return wide(atanh); })
      .Case([&](math::AsinOp) { return wide(asin); })
      .Case([&](math::AcosOp) { return wide(acos); })
      .Case([&](math::AtanOp) { return wide(atan); })
      .Case([&](math::Atan2Op) { return inDouble(kb, atan2, operands[0], operands[1]); })
      .Case([&](math::CbrtOp) { return wide(cbrt); })
      .Case([&](math::PowFOp) { return expandPow(kb, operands[0], operands[1]); })
      .Case([&](math::IPowIOp) { return expandIntegerPow(kb, operands[0], operands[1]); })
      .Case([&](math::FPowIOp) { return expandPowOfInteger(kb, operands[0], operands[1]); })
      .Case([&](arith::MaximumFOp) { return extremum(arg(0), arg(1), false, ordersZeros).v; })
      .Case([&](arith::MinimumFOp) { return extremum(arg(0), arg(1), true, ordersZeros).v; })
      .Case([&](math::RsqrtOp) { return (1.0 / sqrt(arg(0))).v; })
      .Case([&](math::RoundOp) { return roundAway(arg(0)).v; })
      .Case([&](math::FmaOp) { return emitFma(kb, operands[0], operands[1], operands[2]); })
      .Case([&](arith::RemFOp) {
        auto rest = [=](Float x, Float y) { return remainder(x, y, isSingle); };
        return inDouble(kb, rest, operands[0], operands[1]);
      })
      .Case([&](arith::DivSIOp) { return safeDivision<arith::DivSIOp, true, false>(kb, operands[0], operands[1]); })
      .Case([&](arith::DivUIOp) { return safeDivision<arith::DivUIOp, false, false>(kb, operands[0], operands[1]); })
      .Case([&](arith::RemSIOp) { return safeDivision<arith::RemSIOp, true, true>(kb, operands[0], operands[1]); })
      .Case([&](arith::RemUIOp) { return safeDivision<arith::RemUIOp, false, true>(kb, operands[0], operands[1]); })
      .Case([&](arith::FloorDivSIOp) { return roundedDivision(kb, operands[0], operands[1], false); })
      .Case([&](arith::CeilDivSIOp) { return roundedDivision(kb, operands[0], operands[1], true); })
      .Default([](Operation *) { return Value(); });
}

} // namespace tessera::kernels
