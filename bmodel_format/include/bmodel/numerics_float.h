//===- numerics_float.h - The float arithmetic of quantised models ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Single-precision functions and the order of sums, which every engine must reproduce bit for bit. The functions are
// templates over the engine's number type F: `Single` here (C++ and CUDA), a value of generated code in a compiler. F
// provides + - * / and unary -, comparisons that return a mask, `lit(double)`, and, found by argument-dependent lookup:
// mulAdd(x, y, z), abs(x), copySign(x, sign), roundEven(x), inverse(x), select(mask, x, y), toBits(x), fromBits(like,
// bits) and toInt(x). The integer type provides + and - with integers, and << and arithmetic >> by constants.
//
// By specification, mulAdd is fused (x y + z is rounded once), inverse is 1 / x, and nothing else is fused. Machines
// without a fused multiply-add emulate it in double precision. An engine may deviate in code on which no integer result
// depends. Compile translation units that use `Single` with -ffp-contract=off.
//===----------------------------------------------------------------------===//
#ifndef BMODEL_NUMERICS_FLOAT_H
#define BMODEL_NUMERICS_FLOAT_H

#include <cmath>
#include <cstdint>
#include <cstring>

#ifndef BM_NUMERICS
#ifdef __CUDACC__
#define BM_NUMERICS __host__ __device__ inline
#else
#define BM_NUMERICS inline
#endif
#endif

namespace bmodel::numerics {

//===----------------------------------------------------------------------===//
// Single precision of C++
//===----------------------------------------------------------------------===//

struct Single {
  float v;
  BM_NUMERICS Single lit(double number) const { return {static_cast<float>(number)}; }
};

#ifdef __CUDA_ARCH__
BM_NUMERICS Single operator+(Single x, Single y) { return {__fadd_rn(x.v, y.v)}; }
BM_NUMERICS Single operator-(Single x, Single y) { return {__fsub_rn(x.v, y.v)}; }
BM_NUMERICS Single operator*(Single x, Single y) { return {__fmul_rn(x.v, y.v)}; }
BM_NUMERICS Single operator/(Single x, Single y) { return {__fdiv_rn(x.v, y.v)}; }
#else
BM_NUMERICS Single operator+(Single x, Single y) { return {x.v + y.v}; }
BM_NUMERICS Single operator-(Single x, Single y) { return {x.v - y.v}; }
BM_NUMERICS Single operator*(Single x, Single y) { return {x.v * y.v}; }
BM_NUMERICS Single operator/(Single x, Single y) { return {x.v / y.v}; }
#endif
BM_NUMERICS Single operator-(Single x) { return {-x.v}; }
BM_NUMERICS bool operator<(Single x, Single y) { return x.v < y.v; }
BM_NUMERICS bool operator>(Single x, Single y) { return x.v > y.v; }
BM_NUMERICS bool operator==(Single x, Single y) { return x.v == y.v; }
BM_NUMERICS Single mulAdd(Single x, Single y, Single z) { return {std::fma(x.v, y.v, z.v)}; }
BM_NUMERICS Single abs(Single x) { return {std::fabs(x.v)}; }
BM_NUMERICS Single copySign(Single x, Single sign) { return {std::copysign(x.v, sign.v)}; }
BM_NUMERICS Single roundEven(Single x) { return {std::nearbyint(x.v)}; }
BM_NUMERICS Single inverse(Single x) { return Single{1.0f} / x; }
BM_NUMERICS Single select(bool condition, Single x, Single y) { return condition ? x : y; }

/// 32-bit integers that wrap around on overflow.
struct Int {
  int32_t v;
};
BM_NUMERICS Int operator+(Int x, Int y) { return {static_cast<int32_t>(uint32_t(x.v) + uint32_t(y.v))}; }
BM_NUMERICS Int operator-(Int x, Int y) { return {static_cast<int32_t>(uint32_t(x.v) - uint32_t(y.v))}; }
BM_NUMERICS Int operator+(Int x, int32_t y) { return x + Int{y}; }
BM_NUMERICS Int operator-(Int x, int32_t y) { return x - Int{y}; }
BM_NUMERICS Int operator<<(Int x, int by) { return {static_cast<int32_t>(uint32_t(x.v) << by)}; }
BM_NUMERICS Int operator>>(Int x, int by) { return {x.v >> by}; }
/// Converts numbers in the range of Int; the result for NaN is unspecified.
BM_NUMERICS Int toInt(Single x) { return {x.v == x.v ? static_cast<int32_t>(x.v) : INT32_MIN}; }
BM_NUMERICS Single toFloat(Single, Int x) { return {static_cast<float>(x.v)}; }
BM_NUMERICS Int toBits(Single x) {
  Int bits{};
  std::memcpy(&bits.v, &x.v, 4);
  return bits;
}
BM_NUMERICS Single fromBits(Single, Int bits) {
  Single x{};
  std::memcpy(&x.v, &bits.v, 4);
  return x;
}

//===----------------------------------------------------------------------===//
// Functions; polynomials after Cephes (exp, log, tanh) and N. Juffa (erf)
//===----------------------------------------------------------------------===//

/// Evaluates c0 x^n + c1 x^(n-1) + ... by Horner's rule; each step is a mulAdd.
template <typename F>
BM_NUMERICS F horner(F, F sum) {
  return sum;
}
template <typename F, typename... Rest>
BM_NUMERICS F horner(F x, F sum, double next, Rest... rest) {
  return horner(x, mulAdd(sum, x, x.lit(next)), rest...);
}

/// Clamps x to [low, high]; returns NaN for NaN.
template <typename F>
BM_NUMERICS F clamp(F x, double low, double high) {
  F upper = select(x > x.lit(high), x.lit(high), x);
  return select(upper < x.lit(low), x.lit(low), upper);
}

/// Returns e^bounded 2^-n, where n is the integer nearest to bounded / ln(2). Computes 1 + p r^2 + r with |r| <= ln(2)
/// / 2.
template <typename F>
BM_NUMERICS F expOfRest(F n, F bounded) {
  F r = mulAdd(n, n.lit(-0.693359375), bounded);
  r = mulAdd(n, n.lit(2.12194440e-4), r);
  F p = horner(r, r.lit(1.9875691500e-4), 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
               5.0000001201e-1);
  return mulAdd(p, r * r, r) + r.lit(1.0);
}

template <typename F, typename I>
BM_NUMERICS F powerOfTwo(F like, I n) {
  return fromBits(like, (n + 127) << 23);
}

/// Returns e^x, with subnormal results and overflow as in IEEE 754.
template <typename F>
BM_NUMERICS F exp(F x) {
  F bounded = clamp(x, -105.0, 89.0);
  F n = roundEven(bounded * x.lit(1.44269504088896341));
  F rest = expOfRest(n, bounded);
  auto whole = toInt(n), half = whole >> 1;
  return rest * powerOfTwo(x, half) * powerOfTwo(x, whole - half);
}

/// Returns e^x for x in [-87, 87], where e^x and its inverse are normal numbers; clamps x to that range. Costs half as
/// much as exp.
template <typename F>
BM_NUMERICS F expNormal(F x) {
  F bounded = clamp(x, -87.0, 87.0);
  // Adding 1.5 * 2^23 rounds to an integer, which the lowest bits of the sum then hold.
  F shifted = mulAdd(bounded, x.lit(1.44269504088896341), x.lit(0x1.8p23));
  F rest = expOfRest(shifted - x.lit(0x1.8p23), bounded);
  // Builds 2^n from its exponent and multiplies by it, which is exact. For NaN these bits are arbitrary, but |rest| is
  // NaN.
  return rest * fromBits(x, (toBits(shifted) << 23) + 0x3f800000);
}

/// Returns e^x for x <= 0. Flushes subnormal results to 0, because subnormals slow down the code that reads them.
template <typename F>
BM_NUMERICS F expOfNegative(F x) {
  return select(x < x.lit(-87.0), x.lit(0.0), expNormal(x));
}

/// Returns 1 / (1 + e^-x) without exp's handling of extreme x. Returns 0 below -87, so that x * sigmoid(x) vanishes for
/// large negative x.
template <typename F>
BM_NUMERICS F sigmoid(F x) {
  return select(x < x.lit(-87.0), x.lit(0.0), inverse(expNormal(-x) + x.lit(1.0)));
}

/// Returns the natural logarithm of a positive finite x; see log for other x.
template <typename F>
BM_NUMERICS F logOfPositive(F x) {
  auto small = x < x.lit(0x1p-126);
  F normal = select(small, x * x.lit(0x1p25), x); // subnormals become normal
  // x = mantissa 2^exponent with the mantissa in [sqrt(1/2), sqrt(2)): the exponent changes at sqrt(1/2), not at 1.
  auto raw = toBits(normal), exponent = (raw - 0x3f3504f3) >> 23;
  F mantissa = fromBits(x, raw - (exponent << 23)), count = toFloat(x, exponent);
  count = select(small, count - x.lit(25.0), count);
  F z = mantissa - x.lit(1.0), square = z * z;
  F p = horner(z, z.lit(7.0376836292e-2), -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
               -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1);
  F y = mulAdd(count, x.lit(-2.12194440e-4), p * z * square);
  y = mulAdd(square, x.lit(-0.5), y);
  return mulAdd(count, x.lit(0.693359375), z + y);
}

/// Returns the natural logarithm: infinity for infinity, -infinity for 0, NaN for negative numbers and NaN.
template <typename F>
BM_NUMERICS F log(F x) {
  F infinity = fromBits(x, toBits(x.lit(0.0)) + 0x7f800000), nan = fromBits(x, toBits(infinity) + 0x400000);
  F result = select(x == infinity, x, logOfPositive(x));
  F other = select(x == x.lit(0.0), -infinity, nan);
  return select(x > x.lit(0.0), result, other);
}

/// Returns log(1 + x), within 2.4 ulp: the logarithm of the rounded sum times x / (sum - 1), which corrects the
/// rounding of the sum. For a tiny x the sum is 1 and the result is x; for a huge x the sum is x and no correction is
/// needed.
template <typename F>
BM_NUMERICS F log1p(F x) {
  F sum = x + x.lit(1.0), kept = sum - x.lit(1.0), ratio = x / kept, logarithm = log(sum);
  F corrected = select(kept == x.lit(0.0), x, logarithm * ratio);
  return select(sum == x, logarithm, corrected);
}

template <typename F>
BM_NUMERICS F tanh(F x) {
  F magnitude = abs(x), square = x * x;
  F p = horner(square, x.lit(-5.70498872745e-3), 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1,
               -3.33332819422e-1);
  F small = mulAdd(p * square, x, x);
  F large = mulAdd(x.lit(-2.0), inverse(expNormal(magnitude + magnitude) + x.lit(1.0)), x.lit(1.0));
  return copySign(select(magnitude < x.lit(0.625), small, large), x); // -0 stays -0
}

template <typename F>
BM_NUMERICS F erf(F x) {
  F t = abs(x), s = x * x;
  F r = mulAdd(t.lit(-1.72853470e-5), t, t.lit(3.83197126e-4));
  F u = mulAdd(t.lit(-3.88396438e-3), t, t.lit(2.42546219e-2));
  r = horner(t, mulAdd(r, s, u), -1.06777877e-1, -6.34846687e-1, -1.28717512e-1);
  // Beyond 4, erf is 1 in single precision, and the polynomial would overflow to NaN.
  F bounded = select(t > t.lit(4.0), t.lit(-20.0), mulAdd(r, t, -t));
  F large = copySign(x.lit(1.0) - expNormal(bounded), x);
  F p = horner(s, s.lit(-5.96761703e-4), 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1);
  return select(t > t.lit(0.927734375), large, mulAdd(p, x, x));
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// A sum in the order that every engine uses: term i is added to partial sum i % 16, all of which start at 0; then the
/// upper half of the partial sums is added to the lower half until one is left.
class OrderedSum {
public:
  static constexpr int kPartial = 16;

  BM_NUMERICS explicit OrderedSum(Single start = {0.0f}) {
    for (Single &sum : sums) {
      sum = start;
    }
  }
  BM_NUMERICS void add(Single term) {
    addAt(next, term);
    next = (next + 1) % kPartial;
  }
  /// Adds x y with one mulAdd.
  BM_NUMERICS void addProduct(Single x, Single y) {
    sums[next] = mulAdd(x, y, sums[next]);
    next = (next + 1) % kPartial;
  }
  /// Adds |term| to partial sum `index` % 16.
  BM_NUMERICS void addAt(int64_t index, Single term) { sums[index % kPartial] = sums[index % kPartial] + term; }
  BM_NUMERICS Single total() const {
    Single rest[kPartial];
    for (int i = 0; i < kPartial; ++i) {
      rest[i] = sums[i];
    }
    for (int half = kPartial / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) {
        rest[i] = rest[i] + rest[i + half];
      }
    }
    return rest[0];
  }

private:
  Single sums[kPartial];
  int next = 0;
};

} // namespace bmodel::numerics

#endif // BMODEL_NUMERICS_FLOAT_H
