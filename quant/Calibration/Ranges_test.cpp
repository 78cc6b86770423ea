// SPDX-License-Identifier: Apache-2.0
//===- Ranges_test.cpp - The error that a quantisation range causes -------===//
#include "quant/Calibration/Ranges.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace tessera::quant;

namespace {

TEST(Ranges, SquaredErrorIsThatOfRounding) {
  std::mt19937 generator(3);
  std::normal_distribution<double> normal;
  for (int64_t size : {0, 1, 7, 8, 1003}) {
    std::vector<double> centres, counts;
    for (int64_t i = 0; i < size; ++i) {
      centres.push_back(normal(generator));
      counts.push_back(double(i % 5));
    }
    const double low = -0.7, high = 1.1, scale = (high - low) / 255;
    double wanted = 0;
    for (int64_t i = 0; i < size; ++i) {
      const double x = centres[size_t(i)], kept = std::fmin(std::fmax(x, low), high);
      wanted += std::pow(x - std::nearbyint(kept / scale) * scale, 2) * counts[size_t(i)];
    }
    EXPECT_NEAR(squaredError({centres.data(), counts.data(), size}, low, high, 255), wanted, 1e-12 * wanted + 1e-300);
  }
}

TEST(Ranges, NothingIsLostWhereLevelsHoldEveryBin) {
  const std::vector<double> histogram{5, 0, 3, 2};
  EXPECT_NEAR(divergence(histogram, 4, 4), 0, 1e-15);
  // With two levels, 5 and 0 keep their values; 3 and 2 become 2.5 each.
  EXPECT_NEAR(divergence(histogram, 4, 2), 0.3 * std::log(0.3 / 0.25) + 0.2 * std::log(0.2 / 0.25), 1e-15);
  // The clipped values count towards the last bin, which is empty and so has only the tiny probability 1e-12.
  EXPECT_NEAR(divergence(histogram, 2, 2), 0.5 * std::log(0.5) + 0.5 * std::log(0.5 / 1e-12), 1e-9);
  EXPECT_TRUE(std::isinf(divergence({0, 0, 4, 0}, 2, 2)));
}

} // namespace
