//===- WeightScale.cpp - Weight scales with the least squared error -------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Weights/WeightScale.h"

#include "quant/Transforms/Weights/WideVectors.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/bit.h"
#include <cfloat>
#include <cmath>
#include <limits>

using namespace llvm;

namespace tessera::quant {
namespace {

/// Adding and subtracting it rounds floats below 2^22 to the nearest integer, ties to even.
constexpr float kRounder = 0x1.8p23f;

/// Integers in [-2^(bits - 1), 2^(bits - 1) - 1] that represent weights.
struct Range {
  explicit Range(int bits) : high(static_cast<float>((1 << (bits - 1)) - 1)), low(-high - 1) {}
  float round(float value, float scale) const {
    float scaled = value / scale;
    scaled = scaled < low ? low : scaled; // like std::clamp, but without references
    scaled = scaled > high ? high : scaled;
    return (scaled + kRounder) - kRounder;
  }
  float high, low;
};

constexpr size_t kAtOnce = 64; ///< number of independent divisions to compute before their results are summed

/// Computes |values| / |scale|, rounded.
TESSERA_WIDE_VECTORS void roundEach(Range range, const float *values, size_t count, float scale, float *rounded) {
  for (size_t i = 0; i < count; ++i) {
    rounded[i] = range.round(values[i], scale);
  }
}

TESSERA_WIDE_VECTORS void squareErrors(Range range, const float *values, size_t count, float scale, double *squares) {
  for (size_t i = 0; i < count; ++i) {
    double off = double(range.round(values[i], scale)) * scale - values[i];
    squares[i] = off * off;
  }
}

/// Returns the squared error of |values| rounded with |scale|, summed in their order.
double errorOf(const Range &range, ArrayRef<float> values, float scale) {
  double error = 0, squares[kAtOnce];
  for (; !values.empty(); values = values.drop_front(std::min(kAtOnce, values.size()))) {
    const size_t count = std::min(kAtOnce, values.size());
    squareErrors(range, values.data(), count, scale, squares);
    for (size_t i = 0; i < count; ++i) {
      error += squares[i];
    }
  }
  return error;
}

/// Adds the sum of |a| times |b| and the sum of the squares of |a|. Uses several partial sums, which are independent.
TESSERA_WIDE_VECTORS void addProducts(const float *a, const float *b, size_t count, double &products, double &squares) {
  constexpr size_t kLanes = 8;
  double product[kLanes] = {}, square[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      product[lane] += double(a[i + lane]) * b[i + lane], square[lane] += double(a[i + lane]) * a[i + lane];
    }
  }
  for (; i < count; ++i) {
    product[0] += double(a[i]) * b[i], square[0] += double(a[i]) * a[i];
  }
  for (size_t lane = 0; lane < kLanes; ++lane) {
    products += product[lane], squares += square[lane];
  }
}

TESSERA_WIDE_VECTORS void multiplyEach(const float *values, size_t count, float factor, float *results) {
  for (size_t i = 0; i < count; ++i) {
    results[i] = values[i] * factor;
  }
}

/// Candidate scales of 4-bit weights. Clipping the largest value a little makes the step finer for all others. If the
/// largest value is positive, a negative scale maps it to the lowest integer, whose magnitude is larger by one.
struct Candidates {
  static constexpr size_t kCount = 44, kPadded = 48, kVector = 16;

  /// The value, in steps, that the largest weight would get without clipping: even indices use the highest integer or
  /// more, odd indices the lowest integer or less.
  struct Steps {
    constexpr Steps() : values() {
      for (size_t i = 0; i < kPadded; ++i) {
        const float high = 7 + 0.25f * static_cast<float>(i % kCount / 2);
        values[i] = i % 2 ? -high - 1 : high;
      }
    }
    float values[kPadded];
  };

  float scales[kPadded];
  float shares[kPadded], inverses[kPadded]; ///< scale / largest value, and largest value / scale
  float errors[kPadded];                    ///< squared errors of the values in units of the largest
};

TESSERA_WIDE_VECTORS void setScales(float largest, Candidates &candidates) {
  static constexpr Candidates::Steps kSteps;
  const float unit = std::fabs(largest), inverse = 1 / unit;
  for (size_t i = 0; i < Candidates::kPadded; ++i) {
    const float scale = (i % 2 ? largest : unit) / kSteps.values[i];
    candidates.scales[i] = scale;
    candidates.shares[i] = scale * inverse;
    candidates.inverses[i] = unit / scale;
  }
}

/// Sums the squared errors for each candidate. Uses f32 and no divisions, which is enough to separate good scales from
/// bad ones, because this loop takes most of the time of W4. The sums stay in registers.
TESSERA_WIDE_VECTORS void sumErrors(Range range, const float *values, size_t valueCount, Candidates &candidates) {
  constexpr size_t kVector = Candidates::kVector;
  for (size_t first = 0; first < Candidates::kPadded; first += kVector) {
    float scales[kVector], inverses[kVector], errors[kVector] = {};
    for (size_t i = 0; i < kVector; ++i) {
      scales[i] = candidates.shares[first + i], inverses[i] = candidates.inverses[first + i];
    }
    for (size_t v = 0; v < valueCount; ++v) {
      const float value = values[v];
      for (size_t i = 0; i < kVector; ++i) {
        float scaled = value * inverses[i];
        scaled = scaled < range.low ? range.low : scaled;
        scaled = scaled > range.high ? range.high : scaled;
        const float off = ((scaled + kRounder) - kRounder) * scales[i] - value;
        errors[i] += off * off;
      }
    }
    for (size_t i = 0; i < kVector; ++i) {
      candidates.errors[first + i] = errors[i];
    }
  }
}

/// Returns the bits of the least of |values|, which must not be negative. Bits of such floats are ordered like the
/// floats.
TESSERA_WIDE_VECTORS int32_t leastBits(const float *values, size_t count) {
  int32_t least = std::numeric_limits<int32_t>::max();
  for (size_t i = 0; i < count; ++i) {
    const auto bits = llvm::bit_cast<int32_t>(values[i]);
    least = bits < least ? bits : least;
  }
  return least;
}

/// Bits of floats without the sign, which are ordered like the magnitudes.
struct Magnitudes {
  int32_t positive, negative; ///< largest magnitude among positive and among negative values; 0 if there is none
};

TESSERA_WIDE_VECTORS Magnitudes largestMagnitudes(const float *values, size_t count) {
  int32_t positive = 0;
  uint32_t negative = 0x80000000; // includes the sign bit
  for (size_t i = 0; i < count; ++i) {
    const auto bits = llvm::bit_cast<uint32_t>(values[i]);
    positive = int32_t(bits) > positive ? int32_t(bits) : positive;
    negative = bits > negative ? bits : negative;
  }
  return {positive, int32_t(negative & 0x7fffffff)};
}

/// Returns the value farthest from zero; the first one of several.
float largestOf(ArrayRef<float> values) {
  auto [positive, negative] = largestMagnitudes(values.data(), values.size());
  const float largest = llvm::bit_cast<float>(std::max(positive, negative));
  if (positive != negative) {
    return positive > negative ? largest : -largest;
  }
  auto first = llvm::find_if(values, [=](float value) { return std::fabs(value) == largest; });
  return first == values.end() ? 0.0f : *first;
}

/// A scale and its squared error.
struct Fit {
  float scale;
  double error;
};

/// Returns the best candidate; the first one of several.
Fit bestCandidate(const Range &range, ArrayRef<float> values, float largest) {
  Candidates candidates;
  setScales(largest, candidates);
  SmallVector<float, 64> shares; // in units of the largest, so that no square overflows or underflows in f32
  shares.resize_for_overwrite(values.size());
  multiplyEach(values.data(), values.size(), 1 / std::fabs(largest), shares.data());
  sumErrors(range, shares.data(), shares.size(), candidates);
  const float least = llvm::bit_cast<float>(leastBits(candidates.errors, Candidates::kCount));
  const float limit = least * 1.001f + 1e-9f; // margin within which f32 errors cannot be compared
  Fit best{candidates.scales[0], std::numeric_limits<double>::infinity()};
  for (size_t i = 0; i < Candidates::kCount; ++i) {
    if (candidates.errors[i] <= limit) {
      const Fit fit{candidates.scales[i], errorOf(range, values, candidates.scales[i])};
      best = fit.error < best.error ? fit : best;
    }
  }
  return best;
}

} // namespace

float weightScale(ArrayRef<float> values, int bits) {
  const Range range(bits);
  const float largest = largestOf(values);
  if (!(std::fabs(largest) >= FLT_MIN * 256)) {
    return 1.0f / (1 << 20); // any scale represents zeros
  }
  Fit best{std::fabs(largest) / range.high, 0};
  if (bits == 4) {
    best = bestCandidate(range, values, largest);
  } else {
    best.error = errorOf(range, values, best.scale);
  }
  // Compute the least-squares scale for these integers.
  double products = 0, squares = 0;
  float rounded[kAtOnce];
  for (ArrayRef<float> left = values; !left.empty(); left = left.drop_front(std::min(kAtOnce, left.size()))) {
    const size_t count = std::min(kAtOnce, left.size());
    roundEach(range, left.data(), count, best.scale, rounded);
    addProducts(rounded, left.data(), count, products, squares);
  }
  const float last = static_cast<float>(products / squares);
  return errorOf(range, values, last) < best.error ? last : best.scale;
}

} // namespace tessera::quant
