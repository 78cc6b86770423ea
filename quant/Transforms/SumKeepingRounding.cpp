//===- SumKeepingRounding.cpp - To the nearest, but sums stay -------------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/SumKeepingRounding.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <numeric>

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
  // Adding it and taking it away again rounds doubles of less than 2^51 to the nearest integer, ties to even.
  constexpr double kRounder = 0x1.8p52;
  for (size_t i = 0; i < count; ++i) {
    double clamped = exact[i] < low ? low : exact[i];
    clamped = clamped > high ? high : clamped;
    integers[i] = static_cast<int8_t>(static_cast<int>((clamped + kRounder) - kRounder));
  }
}

void SumKeepingRounding::roundExact() {
  integers.resize(exact.size());
  roundEach(exact.data(), exact.size(), lowest, highest, integers.data());
}

void SumKeepingRounding::mend(MutableArrayRef<int64_t> elements) {
  double sum = 0;
  for (int64_t i : elements) {
    sum += error(i);
  }
  auto turns = static_cast<int64_t>(std::ceil(std::abs(sum) - 0.5));
  if (turns <= 0) {
    return;
  }
  int sign = sum > 0 ? 1 : -1;
  turns = std::min<int64_t>(turns, elements.size());
  auto worse = [&](int64_t a, int64_t b) { // by index where equal: the same model gives the same bytes
    return std::pair(-sign * error(a), a) < std::pair(-sign * error(b), b);
  };
  std::partial_sort(elements.begin(), elements.begin() + turns, elements.end(), worse);
  for (int64_t i : elements.take_front(turns)) {
    if (sign * error(i) > 0 && integers[i] != (sign > 0 ? lowest : highest)) {
      integers[i] = static_cast<int8_t>(integers[i] - sign);
    }
  }
}

void SumKeepingRounding::mendRuns(int64_t length, int64_t count) {
  run.resize(length);
  for (int64_t i = 0; length > 1 && i < count; ++i) {
    std::iota(run.begin(), run.end(), i * length);
    mend(run);
  }
}

} // namespace tessera::quant
