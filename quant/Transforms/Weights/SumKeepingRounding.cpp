//===- SumKeepingRounding.cpp - Rounding that preserves sums --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Weights/SumKeepingRounding.h"

#include "quant/Transforms/Weights/WideVectors.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace llvm;

namespace tessera::quant {

SumKeepingRounding::SumKeepingRounding(SmallVector<double> given, int lowest, int highest)
    : exact(std::move(given)), lowest(lowest), highest(highest) {
  roundExact();
}

TESSERA_WIDE_VECTORS static void divide(const float *weights, size_t count, double divisor, double *exact) {
  for (size_t i = 0; i < count; ++i) {
    exact[i] = double(weights[i]) / divisor;
  }
}

void SumKeepingRounding::round(ArrayRef<float> weights, float scale) {
  exact.resize_for_overwrite(weights.size());
  divide(weights.data(), weights.size(), scale, exact.data());
  roundExact();
}

TESSERA_WIDE_VECTORS static void roundEach(const double *exact, size_t count, double low, double high,
                                           int8_t *integers) {
  // Adding and subtracting it rounds doubles below 2^51 to the nearest integer, ties to even.
  constexpr double kRounder = 0x1.8p52;
  for (size_t i = 0; i < count; ++i) {
    double clamped = exact[i] < low ? low : exact[i];
    clamped = clamped > high ? high : clamped;
    integers[i] = static_cast<int8_t>(static_cast<int>((clamped + kRounder) - kRounder));
  }
}

TESSERA_WIDE_VECTORS static void subtract(const int8_t *integers, const double *exact, size_t count, double *errors) {
  for (size_t i = 0; i < count; ++i) {
    errors[i] = integers[i] - exact[i];
  }
}

void SumKeepingRounding::roundExact() {
  integers.resize(exact.size());
  roundEach(exact.data(), exact.size(), lowest, highest, integers.data());
}

/// Returns the sum of |errors|, added in their order.
static double sumOf(ArrayRef<double> errors) {
  double sum = 0;
  for (double error : errors) {
    sum += error;
  }
  return sum;
}

TESSERA_WIDE_VECTORS static void multiplyEach(double *values, size_t count, double factor) {
  for (size_t i = 0; i < count; ++i) {
    values[i] *= factor;
  }
}

/// Returns the least of |values| above |floor|, or infinity. Keeps several minima, whose computations are independent.
TESSERA_WIDE_VECTORS static double leastAbove(const double *values, size_t count, double floor) {
  constexpr size_t kLanes = 8;
  double least[kLanes];
  std::fill_n(least, kLanes, std::numeric_limits<double>::infinity());
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      least[lane] = value > floor && value < least[lane] ? value : least[lane];
    }
  }
  for (; i < count; ++i) {
    least[0] = values[i] > floor && values[i] < least[0] ? values[i] : least[0];
  }
  return *std::min_element(least, least + kLanes);
}

TESSERA_WIDE_VECTORS static size_t countUpTo(const double *values, size_t count, double last) {
  size_t found = 0;
  for (size_t i = 0; i < count; ++i) {
    found += values[i] <= last;
  }
  return found;
}

/// Returns the |rank|-th of |values| in ascending order; ranks start at 1.
static double valueOfRank(ArrayRef<double> values, size_t rank, SmallVectorImpl<double> &scratch) {
  if (rank > 8) {
    scratch.assign(values.begin(), values.end());
    std::nth_element(scratch.begin(), scratch.begin() + rank - 1, scratch.end());
    return scratch[rank - 1];
  }
  double value = -std::numeric_limits<double>::infinity(); // search step by step, without unpredictable branches
  do {
    value = leastAbove(values.data(), values.size(), value);
  } while (countUpTo(values.data(), values.size(), value) < rank);
  return value;
}

void SumKeepingRounding::mend(ArrayRef<int64_t> elements) {
  errors.resize_for_overwrite(elements.size());
  for (auto [place, i] : llvm::enumerate(elements)) {
    errors[place] = integers[i] - exact[i];
  }
  mendErrors([=](size_t place) { return elements[place]; });
}

void SumKeepingRounding::mendRuns(int64_t length, int64_t count) {
  for (int64_t first = 0; length > 1 && first < length * count; first += length) {
    errors.resize_for_overwrite(length);
    subtract(integers.data() + first, exact.data() + first, length, errors.data());
    mendErrors([=](size_t place) { return first + int64_t(place); });
  }
}

template <typename ElementAt>
void SumKeepingRounding::mendErrors(ElementAt elementAt) {
  const double sum = sumOf(errors);
  const auto turns = static_cast<int64_t>(std::ceil(std::abs(sum) - 0.5));
  if (turns <= 0) {
    return;
  }
  const int sign = sum > 0 ? 1 : -1, bound = sign > 0 ? lowest : highest;
  multiplyEach(errors.data(), errors.size(), -sign); // the most negative errors are the best candidates
  const size_t most = std::min<size_t>(turns, errors.size());
  const double last = valueOfRank(errors, most, scratch);
  // Ties are resolved by position, so that the same model always gives the same bytes.
  size_t equal = most - countUpTo(errors.data(), errors.size(), std::nextafter(last, -HUGE_VAL));
  for (auto [place, error] : llvm::enumerate(errors)) {
    int8_t &integer = integers[elementAt(place)];
    const bool isLast = error == last && equal > 0;
    equal -= isLast;
    const bool turned = (error < last || isLast) && error < 0 && integer != bound;
    integer = static_cast<int8_t>(integer - (turned ? sign : 0));
  }
}

} // namespace tessera::quant
