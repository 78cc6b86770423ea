//===- WeightScale_test.cpp - No candidate scale is better ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Weights/WeightScale.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

using namespace tessera::quant;

namespace {

/// Returns the squared error of |values| rounded to multiples of |scale|, divided by the square of |unit|.
double errorOf(const std::vector<float> &values, float scale, int bits, double unit) {
  const float high = static_cast<float>((1 << (bits - 1)) - 1);
  double error = 0;
  for (float value : values) {
    const double integer = std::nearbyint(std::clamp(value / scale, -high - 1, high));
    const double off = (integer * scale - value) / unit;
    error += off * off;
  }
  return error;
}

/// Returns the candidate scales. With 4 bits, the largest value becomes 7 to 12.25 or -8 to -13.25 steps.
std::vector<float> candidates(float largest, int bits) {
  const float high = static_cast<float>((1 << (bits - 1)) - 1);
  std::vector<float> scales{std::fabs(largest) / high};
  for (float steps = high; bits == 4 && steps <= high * 1.75f; steps += 0.25f) {
    scales.push_back(std::fabs(largest) / steps);
    scales.push_back(largest / (-steps - 1));
  }
  return scales;
}

/// Returns normal or uniform values, or few distinct ones, of any magnitude, sometimes with zeros or an outlier.
std::vector<float> randomValues(std::mt19937 &random) {
  const float spread = std::ldexp(1.0f, int(random() % 200) - 100);
  const int kind = int(random() % 4);
  std::vector<float> values(1 + random() % (random() % 8 ? 70 : 300));
  for (float &value : values) {
    const float share = std::uniform_real_distribution<float>(-1, 1)(random);
    const float normal = std::normal_distribution<float>()(random);
    value = spread * (kind == 0 ? share : kind == 1 ? normal : kind == 2 ? std::round(2 * share) : std::fabs(normal));
  }
  values[random() % values.size()] *= random() % 4 ? 1.0f : 5.0f;
  return values;
}

TEST(WeightScale, NoCandidateIsBetter) {
  std::mt19937 random(1);
  for (int round = 0; round < 4000; ++round) {
    const int bits = round % 2 ? 4 : 8;
    const std::vector<float> values = randomValues(random);
    const auto isLess = [](float a, float b) { return std::fabs(a) < std::fabs(b); };
    const float largest = *std::max_element(values.begin(), values.end(), isLess);
    if (largest == 0) {
      continue;
    }
    const double unit = std::fabs(largest);
    const double error = errorOf(values, weightScale(values, bits), bits, unit);
    for (float scale : candidates(largest, bits)) {
      // Allow for rounding: the errors are computed in other units here.
      EXPECT_LE(error, errorOf(values, scale, bits, unit) * (1 + 1e-6) + 1e-12) << "round " << round;
    }
  }
}

TEST(WeightScale, TheLargestValueHasTheLowestInteger) {
  for (float sign : {1.0f, -1.0f}) { // eight steps down, which only a scale of this sign reaches
    EXPECT_EQ(weightScale({sign * 8, sign, -sign * 7, sign * 3}, 4), -sign);
  }
}

TEST(WeightScale, ZerosHaveOneToo) {
  for (float value : {0.0f, -0.0f, FLT_MIN / 4}) {
    EXPECT_GT(weightScale(std::vector<float>(17, value), 4), 0);
  }
}

} // namespace
