//===- QuantisedSoftmax.cpp - Handler of softmax on integers --------------===//
// SPDX-License-Identifier: Apache-2.0
//
// LiteRT's reference kernel in fixed-point arithmetic: a number of Qm has m bits before the point and 31 - m after it.
// Exponentials of the 256 differences are looked up; the reciprocal of each row's sum is computed at run time.
#include "top_dialect/Import/Tflite/QuantisedImporter.h"

#include "top_dialect/IR/TopFixedPointOps.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

namespace tessera::top::tflite_import {
namespace {

constexpr int kDifferenceBits = 5; ///< differences are Q5
constexpr int kSumBits = 12;       ///< sums are Q12

int64_t saturated(int64_t value) { return std::clamp<int64_t>(value, INT32_MIN, INT32_MAX); }

/// Returns a b / 2^31, with halves upwards.
int64_t product(int64_t a, int64_t b) { return saturated((a * b + (int64_t(1) << 30)) >> 31); }

/// Returns x / 2^shift, with halves away from zero.
int64_t roundedShift(int64_t x, int shift) {
  int64_t mask = (int64_t(1) << shift) - 1;
  return (x >> shift) + ((x & mask) > (mask >> 1) + (x < 0));
}

/// Returns e^a in Q0 for a in [-1/4, 0) of Q0: a Taylor polynomial around -1/8.
int64_t exponentialNearZero(int64_t a) {
  constexpr int64_t kAtEighth = 1895147668, kThird = 715827883;
  int64_t x = a + (1 << 28), x2 = product(x, x), x3 = product(x2, x), x4 = product(x2, x2);
  int64_t rest = roundedShift(product(roundedShift(x4, 2) + x3, kThird) + x2, 1);
  return kAtEighth + product(kAtEighth, x + rest);
}

/// Returns e^a in Q0 for a <= 0 in Q5.
int64_t exponential(int64_t a) {
  constexpr int kFraction = 31 - kDifferenceBits;
  constexpr int64_t kQuarter = int64_t(1) << (kFraction - 2);
  if (a == 0) {
    return INT32_MAX;
  }
  int64_t rest = (a & (kQuarter - 1)) - kQuarter, result = exponentialNearZero(saturated(rest << kDifferenceBits));
  // e^-(2^i) in Q0 for i from -2 on.
  constexpr int64_t kPowers[] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
  for (int i = 0; i < 7; ++i) {
    bool isSet = (rest - a) >> (kFraction + i - 2) & 1;
    result = isSet ? product(result, kPowers[i]) : result;
  }
  return result;
}

/// Returns the exponentials of the differences 0, -1, .., -255 times |scale|, in Q0. The smallest are left out: 0.
Ints exponentials(double scale) {
  FixedFactor factor = toFixedFactor(std::min(scale * double(1 << (31 - kDifferenceBits)), 2147483647.0));
  int left = 31 - factor.shift;
  int64_t least = -int64_t(
      std::floor(double((1 << kDifferenceBits) - 1) * double(1 << (31 - kDifferenceBits)) / std::ldexp(1, left)));
  Ints table;
  for (int64_t difference = 0; difference > -256; --difference) {
    table.push_back(difference < least ? 0 : exponential(product(difference * (int64_t(1) << left), factor.mantissa)));
  }
  return table;
}

/// Formulas on i64 tensors.
class LongTensors {
public:
  explicit LongTensors(OperatorImporter &n) : n(n), i64(n.b.getBuilder().getI64Type()) {}

  Value lit(int64_t value) { return QuantisedImporter(n).constant(i64, {}, {value}, "number"); }
  Value add(Value a, int64_t c) { return n.create<AddOp>(a, lit(c)); }
  Value product(Value a, Value c) {
    return n.create<BitShiftOp>(add(n.create<MulOp>(a, c), int64_t(1) << 30), lit(31), false);
  }
  Value shiftedLeft(Value a, int64_t bits) { return clamped(n.create<BitShiftOp>(a, lit(bits), true)); }
  Value clamped(Value a) { return n.clip(a, INT32_MIN, INT32_MAX); }

  OperatorImporter &n;
  mlir::Type i64;
};

/// Returns 1 / (1 + a) in Q0 for |a| in [0, 1) of Q0: three steps of Newton's method in Q2.
Value reciprocal(LongTensors &t, Value a) {
  constexpr int64_t k48Over17 = 1515870810, kMinus32Over17 = -1010580540, kOne = int64_t(1) << 29;
  Value half = t.n.create<BitShiftOp>(t.add(a, int64_t(1) << 31), t.lit(1), false);
  Value x = t.add(t.product(half, t.lit(kMinus32Over17)), k48Over17);
  for (int i = 0; i < 3; ++i) {
    Value error = t.n.create<SubOp>(t.lit(kOne), t.product(half, x));
    x = t.n.create<AddOp>(x, t.shiftedLeft(t.product(x, error), 2));
  }
  return t.shiftedLeft(x, 1);
}

/// Returns the number of leading zeros of each row's sum in Q12, as i64. A sum contains e^0, i.e. 2^19.
Value leadingZeros(LongTensors &t, Value sums) {
  Ints powers;
  for (int i = 20; i <= 30; ++i) {
    powers.push_back(int64_t(1) << i);
  }
  Value bounds = QuantisedImporter(t.n).constant(t.i64, {11}, powers, "powers");
  Value reached = t.n.cast(t.n.create<CompareOp>(sums, bounds, CompareKind::ge), t.i64);
  Value count = t.n.create<ReduceOp>(reached, ReduceKind::sum, Ints{t.n.rank(sums) - 1}, true);
  return t.n.create<SubOp>(t.lit(31 - 19), count);
}

/// Checks the types and the scale that LiteRT's kernel needs.
bool check(QuantisedImporter &q) {
  OperatorImporter &n = q.n;
  mlir::Type type = n.elementType(n.input(0)), result = q.outputType();
  if (!n.failed() && (!type.isInteger(8) || !(result == type || result.isSignlessInteger(16)))) {
    n.unsupported("only INT8 and UINT8 operands are supported");
  }
  if (!n.failed() && n.rank(n.input(0)) == 0) {
    n.fail("its operand is a scalar");
  }
  Quantisation y = q.output();
  float scale = result.isInteger(16) ? 1.0f / 32768 : 1.0f / 256;
  if (!n.failed() && type.isSignlessInteger() && result == type &&
      (y.zero() != limitsOf(result).first || std::abs(y.scale() - scale) > 0.001f * scale)) {
    n.unsupported(llvm::formatv("its result has scale {0:e} and zero point {1}; LiteRT needs 1/256 and -128", y.scale(),
                                y.zero()));
  }
  return !n.failed();
}

} // namespace

void quantisedSoftmax(OperatorImporter &n) {
  QuantisedImporter q(n);
  double scale = double(n.options<tflite::SoftmaxOptions>().beta()) * double(q.input(0).scale());
  if (!(scale * double(1 << (31 - kDifferenceBits)) > 1)) {
    n.unsupported(llvm::formatv("its scale times beta is {0:e}, which is too small", scale));
  }
  if (!check(q)) {
    return;
  }
  Value x = q.centred(n.input(0), 0);
  Ints rows{n.rank(x) - 1}, table = exponentials(scale), parts;
  for (int64_t entry : table) {
    parts.push_back(roundedShift(entry, kSumBits));
  }
  Value below = n.create<SubOp>(n.create<ReduceOp>(x, ReduceKind::max, rows, true), x);
  auto look = [&](const Ints &entries) {
    return n.create<GatherOp>(q.constant(q.i32(), {256}, entries, "exponentials"), below, 0);
  };
  LongTensors t(n);
  Value sums = n.cast(n.create<ReduceOp>(look(parts), ReduceKind::sum, rows, true), q.i64());
  Value zeros = leadingZeros(t, sums);
  Value fraction = t.add(n.create<BitShiftOp>(sums, zeros, true), -(int64_t(1) << 31));
  // The result has as many fractional bits as its type, so that 1 saturates.
  mlir::Type type = q.outputType();
  auto [low, high] = limitsOf(type);
  Value shift = n.create<SubOp>(t.lit(31 + kSumBits + 31 - type.getIntOrFloatBitWidth()), zeros);
  n.setOutput(0, n.create<RequantizeOp>(look(table), n.cast(reciprocal(t, fraction), q.i32()), n.cast(shift, q.i32()),
                                        low, low, high, type));
}

} // namespace tessera::top::tflite_import
