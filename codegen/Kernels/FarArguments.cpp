//===- FarArguments.cpp - Exact argument reduction for any magnitude ------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/FarArguments.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

/// Returns true (an i1) if any lane of |lanes|, a scalar or vector of i1, is set.
Value anyOf(KernelBuilder &kb, Value lanes) {
  return isa<VectorType>(lanes.getType()) ? Value(vector::ReductionOp::create(kb.b, vector::CombiningKind::OR, lanes))
                                          : lanes;
}
Value atLeast(Float x, double y) { return arith::CmpFOp::create(x.kb->b, arith::CmpFPredicate::OGE, x.v, x.lit(y).v); }
Value both(KernelBuilder &kb, Value x, Value y) { return arith::AndIOp::create(kb.b, x, y); }

constexpr double kInfinity = std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// Reduction by pi / 2 after M. Payne and R. Hanek
//===----------------------------------------------------------------------===//

/// The smallest argument that nearRest() no longer reduces exactly.
constexpr double kFar = 0x1p20;

/// The bits of 2 / pi after the binary point; the first bit is the highest bit of the first word.
constexpr uint64_t kTwoOverPi[] = {0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
                                   0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
                                   0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
                                   0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
                                   0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d};

/// Returns 32 bits of 2 / pi from bit |first| on; bits at negative positions are zeros.
int64_t bitsOfTwoOverPi(int64_t first) {
  int64_t limb = 0;
  for (int64_t i = first; i < first + 32; ++i) {
    uint64_t word = i < 0 ? 0 : kTwoOverPi[i / 64] >> (63 - i % 64);
    limb = 2 * limb + int64_t(word & 1);
  }
  return limb;
}

/// Multiplies the mantissa of |x| by the bits of 2 / pi that matter: higher bits only contribute whole turns, lower
/// bits lie below the precision of the result.
class FarReduction {
public:
  FarReduction(Float x, bool isSingle)
      : kb(*x.kb), x(x), isSingle(isSingle), zeros(isSingle ? 5 : 34), limbs(isSingle ? 4 : 6) {}

  HalfPi run() {
    splitArgument();
    SmallVector<Int> product = multiply(takeWindow());
    // The product counts quarter turns in units of 2^-(32 limbs - 2); its two highest bits are the quadrant.
    Int high = (product[limbs - 1] << 32) | product[limbs - 2];
    Int low = (product[limbs - 3] << 32) | product[limbs - 4];
    Int quadrant = shiftDown(high + constant(int64_t(1) << 61), 62); // rounded to nearest
    Float turns = toFloat(x, high - (quadrant << 62)) * 0x1p-62 + toFloat(x, shiftDown(low, 1)) * 0x1p-125;
    Float rest = turns * 1.57079632679489661923 + turns * 6.12323399573676588613e-17;
    Value isNegative = x < 0.0;
    rest = select(abs(x) < kInfinity, rest, x.lit(std::numeric_limits<double>::quiet_NaN()));
    return {select(isNegative, constant(0) - quadrant, quadrant), select(isNegative, -rest, rest)};
  }

private:
  Int constant(int64_t value) { return {&kb, integer(kb, integerLike(x.type()), value)}; }

  /// Splits |x| = mantissa 2^e and sets |first| to the first bit of 2 / pi that matters, counted with |zeros| leading
  /// zeros. |x| must be far.
  void splitArgument() {
    Int raw = toBits(abs(x));
    mantissa = (raw & ((int64_t(1) << 52) - 1)) | constant(int64_t(1) << 52);
    int64_t lowest = 1075;
    if (isSingle) {
      mantissa = shiftDown(mantissa, 29), lowest -= 29;
    }
    first = shiftDown(raw, 52) - constant(lowest + 2 - zeros);
  }

  /// Returns the window of 2 / pi from bit |first| on as limbs of 32 bits, the highest first.
  SmallVector<Int> takeWindow() {
    int shifts = isSingle ? 2 : 5; // |first| is below 2^(5 + shifts)
    SmallVector<Int> window;
    for (int64_t i = 0; i < limbs + (int64_t(1) << shifts); ++i) {
      window.push_back(constant(bitsOfTwoOverPi(32 * i - zeros)));
    }
    for (int shift = shifts - 1; shift >= 0; --shift) {
      int64_t step = int64_t(1) << shift;
      Value moves = (first & (32 * step)) != 0;
      for (int64_t i = 0; i < limbs + step; ++i) {
        window[i] = select(moves, window[i + step], window[i]);
      }
    }
    Int down = constant(32) - (first & 31);
    for (int64_t i = 0; i < limbs; ++i) {
      window[i] = shiftDown((window[i] << 32) | window[i + 1], down) & kLimb;
    }
    window.truncate(limbs);
    return window;
  }

  /// Returns the lowest |limbs| limbs of mantissa * window, the lowest first.
  SmallVector<Int> multiply(ArrayRef<Int> window) {
    SmallVector<Int> product(limbs, constant(0));
    auto add = [&](int64_t at, Int value) {
      if (at < limbs) {
        product[at] = product[at] + (value & kLimb);
      }
      if (at + 1 < limbs) {
        product[at + 1] = product[at + 1] + shiftDown(value, 32);
      }
    };
    for (int64_t i = 0; i < limbs; ++i) {
      Int factor = window[limbs - 1 - i];
      add(i, (mantissa & kLimb) * factor);
      if (!isSingle) {
        add(i + 1, shiftDown(mantissa, 32) * factor);
      }
    }
    for (int64_t i = 0; i < limbs; ++i) {
      if (i + 1 < limbs) {
        product[i + 1] = product[i + 1] + shiftDown(product[i], 32);
      }
      product[i] = product[i] & kLimb;
    }
    return product;
  }

  static constexpr int64_t kLimb = 0xffffffff;
  KernelBuilder &kb;
  Float x;
  bool isSingle;
  int64_t zeros, limbs;
  Int mantissa{}, first{};
};

} // namespace

/// Returns x - n pi / 2. pi / 2 is split into parts; all products with n but the last are exact for |n| < 2^20.
static Float nearRest(Float x, Float n, bool isSingle) {
  Float rest = x - n * (2 * 7.85398125648498535156e-1) - n * (2 * 3.77489470793079817668e-8);
  return isSingle ? rest - n * (2 * 2.69515142907905952645e-15)
                  : rest - n * 5.390302854212565e-15 - n * 3.9455541665632055e-24;
}

HalfPi reduceByHalfPi(Float x, bool isSingle) {
  Float n = roundEven(x * 0.63661977236758134308), near = nearRest(x, n, isSingle);
  Int quadrant = toInt(n);
  KernelBuilder &kb = *x.kb;
  Value isFar = atLeast(abs(x), kFar);
  auto reduceFar = [&] {
    HalfPi far = FarReduction(x, isSingle).run();
    return SmallVector<Value>{select(isFar, far.quadrant, quadrant).v, select(isFar, far.rest, near).v};
  };
  SmallVector<Value> reduced = kb.ifElseAll(anyOf(kb, isFar), reduceFar, {quadrant.v, near.v});
  return {{&kb, reduced[0]}, x.make(reduced[1])};
}

//===----------------------------------------------------------------------===//
// Remainders
//===----------------------------------------------------------------------===//

namespace {

/// Quotient bits that one reduction step removes.
constexpr int kQuotientBits = 24;

/// Subtracts from x the nearest multiple of y, exactly, for quotients up to 2^kQuotientBits: y is split into two parts
/// whose products with the quotient are exact.
Float reduceOnce(Float x, Float y, bool isSingle) {
  Float quotient = roundEven(x / y), high = fromBits(y, toBits(y) & ~((int64_t(1) << 27) - 1)), low = y - high;
  if (isSingle) {
    return (x - quotient * high) - quotient * low;
  }
  // For the largest f64 the nearest multiple of y may overflow, so half of each operand is used.
  Value isHuge = abs(x) > 0x1p1000;
  Float unit = select(isHuge, x.lit(0.5), x.lit(1.0)), rest = (x * unit - quotient * (high * unit));
  return (rest - quotient * (low * unit)) * select(isHuge, x.lit(2.0), x.lit(1.0));
}

/// Reduces x by y > 0 for any quotient of finite numbers. Each step subtracts a multiple of y times a power of two that
/// keeps the step's quotient small.
Float reduceFully(Float x, Float y, bool isSingle) {
  KernelBuilder &kb = *x.kb;
  constexpr int64_t kSingleExponents = 128 + 149, kExponents = 1024 + 1074;
  int64_t steps = (isSingle ? kSingleExponents : kExponents) / (kQuotientBits - 1) + 1;
  auto [mantissa, exponent] = splitExponent(y);
  auto reduce = [&](Value, ValueRange old) {
    Float rest = x.make(old[0]), last = splitExponent(abs(rest)).second - double(kQuotientBits - 1);
    return SmallVector<Value>{
        reduceOnce(rest, scaleByPower(mantissa, select(last > exponent, last, exponent)), isSingle).v};
  };
  return x.make(kb.forLoop(kb.constant(0), kb.constant(steps), 1, {x.v}, reduce)[0]);
}

} // namespace

Float remainder(Float x, Float y, bool isSingle) {
  KernelBuilder &kb = *x.kb;
  Float magnitude = abs(x), divisor = abs(y), near = reduceOnce(magnitude, divisor, isSingle);
  Value isFar = both(kb, atLeast(magnitude / divisor, double(1 << kQuotientBits)),
                     both(kb, magnitude < kInfinity, divisor > 0.0));
  auto far = [&] { return select(isFar, reduceFully(magnitude, divisor, isSingle), near).v; };
  Float rest = x.make(kb.ifElse(anyOf(kb, isFar), far, near.v));
  rest = select(rest < 0.0, rest + divisor, rest);
  // The remainder of a finite number by infinity is the number itself.
  Value isWhole = both(kb, divisor == kInfinity, magnitude < kInfinity);
  return copySign(select(isWhole, magnitude, rest), x);
}

} // namespace tessera::kernels
