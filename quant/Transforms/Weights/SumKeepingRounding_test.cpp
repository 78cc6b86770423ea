//===- SumKeepingRounding_test.cpp - The right weights are rounded the other way --===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Weights/SumKeepingRounding.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace tessera::quant;

namespace {

/// Reference implementation of SumKeepingRounding::mend, which sorts all errors.
void mendSorted(const llvm::SmallVector<double> &exact, std::vector<int8_t> &integers, int lowest, int highest) {
  double sum = 0;
  std::vector<std::pair<double, size_t>> errors;
  for (size_t i = 0; i < exact.size(); ++i) {
    sum += integers[i] - exact[i];
  }
  const int sign = sum > 0 ? 1 : -1;
  for (size_t i = 0; i < exact.size(); ++i) {
    errors.emplace_back(-sign * (integers[i] - exact[i]), i);
  }
  std::sort(errors.begin(), errors.end());
  errors.resize(std::min<size_t>(errors.size(), std::max(0.0, std::ceil(std::abs(sum) - 0.5))));
  for (auto [error, i] : errors) {
    integers[i] -= error < 0 && integers[i] != (sign > 0 ? lowest : highest) ? sign : 0;
  }
}

/// Returns values around a mean, uniform or on a grid (which gives equal errors). Some exceed the integer range.
llvm::SmallVector<double> randomValues(std::mt19937 &random, size_t count) {
  const double spread = 1 + random() % 20, mean = int(random() % 21) - 10;
  const bool grid = random() % 2;
  llvm::SmallVector<double> values;
  for (size_t i = 0; i < count; ++i) {
    const double value = std::uniform_real_distribution<double>(mean - spread, mean + spread)(random);
    values.push_back(grid ? std::round(value * 4) / 4 : value);
  }
  return values;
}

TEST(SumKeepingRounding, TurnsTheWorst) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    const int lowest = -8, highest = 7;
    const size_t count = 2 + random() % (round % 10 ? 70 : 700);
    const llvm::SmallVector<double> exact = randomValues(random, count);
    SumKeepingRounding rounding(exact, lowest, highest), listed(exact, lowest, highest);
    std::vector<int8_t> expected = rounding.get();
    mendSorted(exact, expected, lowest, highest);
    rounding.mendRuns(int64_t(count), 1);
    EXPECT_EQ(rounding.get().vec(), expected) << "round " << round;
    std::vector<int64_t> all(count);
    std::iota(all.begin(), all.end(), 0);
    listed.mend(all);
    EXPECT_EQ(listed.get().vec(), expected) << "round " << round;
  }
}

TEST(SumKeepingRounding, MendsEachRun) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    const size_t length = 2 + random() % 30, count = 1 + random() % 9;
    const llvm::SmallVector<double> exact = randomValues(random, length * count);
    SumKeepingRounding rounding(exact, -127, 127);
    std::vector<int8_t> expected;
    for (size_t i = 0; i < count; ++i) {
      const llvm::SmallVector<double> own(llvm::ArrayRef<double>(exact).slice(i * length, length));
      std::vector<int8_t> integers = SumKeepingRounding(own, -127, 127).get();
      mendSorted(own, integers, -127, 127);
      expected.insert(expected.end(), integers.begin(), integers.end());
    }
    rounding.mendRuns(int64_t(length), int64_t(count));
    EXPECT_EQ(rounding.get().vec(), expected) << "round " << round;
  }
}

} // namespace
