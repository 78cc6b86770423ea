//===- Numerics_test.cpp - Requantisation against slower definitions -------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmodel/numerics.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <tuple>

using namespace bmodel::numerics;

namespace {

constexpr int32_t kLow = -128, kHigh = 127;

/// Computes floor(sum mantissa / 2^shift + 1/2) with 128-bit integers.
int64_t roundUp(int32_t sum, FixedFactor factor) {
  __int128 half = __int128(1) << (factor.shift - 1), product = __int128(sum) * factor.mantissa + half;
  __int128 unit = __int128(1) << factor.shift, quotient = product / unit;
  return int64_t(quotient - (product % unit < 0));
}

// The definitions of TensorFlow Lite, from gemmlowp.
int32_t doublingHighMul(int32_t a, int32_t b) {
  bool overflow = a == b && a == std::numeric_limits<int32_t>::min();
  int64_t product = int64_t(a) * b;
  int32_t nudge = product >= 0 ? (1 << 30) : (1 - (1 << 30));
  return overflow ? std::numeric_limits<int32_t>::max() : int32_t((product + nudge) / (int64_t(1) << 31));
}
int32_t divideByPowerOfTwo(int32_t x, int exponent) {
  int32_t mask = int32_t((int64_t(1) << exponent) - 1), remainder = x & mask;
  int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
  return (x >> exponent) + (remainder > threshold ? 1 : 0);
}

TEST(ToFixed, Normalises) {
  EXPECT_EQ(toFixed(1.0).mantissa, 1 << 30);
  EXPECT_EQ(toFixed(1.0).shift, 30);
  EXPECT_EQ(toFixed(0.75).shift, 31);
  EXPECT_EQ(toFixed(std::nextafter(1.0, 0.0)).mantissa, 1 << 30); // rounds up to the next power of two
  EXPECT_EQ(toFixed(std::ldexp(0.5, -40)).shift, 62);
  EXPECT_EQ(toFixed(1e-300).mantissa, 0);
  EXPECT_EQ(toFixed(1e300).mantissa, INT32_MAX);
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    double factor = std::ldexp(1.0 + double(random() % 1000000) / 1e6, int(random() % 30) - 29);
    FixedFactor fixed = toFixed(factor);
    EXPECT_GE(fixed.mantissa, 1 << 30);
    EXPECT_NEAR(std::ldexp(double(fixed.mantissa), -fixed.shift) / factor, 1, 1e-9);
  }
}

TEST(Requantise, NegativeHalves) {
  // Halves of these sums are -2.5, -1.5, -0.5, 0.5, 1.5, 2.5.
  FixedFactor half = toFixed(0.5);
  for (auto [sum, even, up, away] :
       {std::tuple(-5, -2, -2, -3), {-3, -2, -1, -2}, {-1, 0, 0, -1}, {1, 0, 1, 1}, {3, 2, 2, 2}, {5, 2, 3, 3}}) {
    EXPECT_EQ(requantiseFloat(sum, 0.5f, 0, kLow, kHigh), even);
    EXPECT_EQ(requantiseFixed(sum, half, 0, kLow, kHigh), up);
  }
  // TFLite rounds a factor of 0.5 in the 31-bit step, where halves go up. For a quarter the second step rounds, where
  // halves go away from zero.
  FixedFactor quarter = toFixed(0.25);
  EXPECT_EQ(requantiseTflite(-1, half, 0, kLow, kHigh), 0);
  EXPECT_EQ(requantiseTflite(-6, quarter, 0, kLow, kHigh), -2);
  EXPECT_EQ(requantiseFixed(-6, quarter, 0, kLow, kHigh), -1);
  // With two roundings, 0.4999 yields 1 (0.9998 rounds to 1, and half of it to 1); with one rounding it yields 0.
  EXPECT_EQ(requantiseTflite(1, toFixed(0.4999), 0, kLow, kHigh), 1);
  EXPECT_EQ(requantiseFixed(1, toFixed(0.4999), 0, kLow, kHigh), 0);
}

TEST(Requantise, RandomSumsAndFactors) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 200000; ++i) {
    auto sum = static_cast<int32_t>(random() >> (random() % 32 + 32));
    sum = random() % 2 ? sum : -sum;
    FixedFactor factor{static_cast<int32_t>((1 << 30) + random() % (1 << 30)), static_cast<int32_t>(random() % 62 + 1)};
    int32_t zero = static_cast<int32_t>(random() % 256) - 128;
    EXPECT_EQ(requantiseFixed(sum, factor, zero, kLow, kHigh),
              std::clamp<int64_t>(roundUp(sum, factor) + zero, kLow, kHigh))
        << sum << " " << factor.mantissa << " " << factor.shift;
    int32_t left = std::max(31 - factor.shift, 0), right = std::max(factor.shift - 31, 0);
    int64_t shifted = int64_t(sum) << left;
    if (shifted == int32_t(shifted)) { // where gemmlowp's definition applies
      int64_t want = divideByPowerOfTwo(doublingHighMul(int32_t(shifted), factor.mantissa), right);
      EXPECT_EQ(requantiseTflite(sum, factor, zero, kLow, kHigh), std::clamp<int64_t>(want + zero, kLow, kHigh))
          << sum << " " << factor.mantissa << " " << factor.shift;
    }
  }
}

TEST(Requantise, Saturates) {
  for (int32_t sum : {INT32_MIN, INT32_MAX}) {
    int32_t want = sum < 0 ? kLow : kHigh;
    for (FixedFactor factor : {FixedFactor{INT32_MAX, 1}, FixedFactor{INT32_MAX, 31}}) {
      EXPECT_EQ(requantiseFixed(sum, factor, 0, kLow, kHigh), want);
      EXPECT_EQ(requantiseTflite(sum, factor, 0, kLow, kHigh), want);
    }
    EXPECT_EQ(requantiseFixed(sum, {INT32_MAX, 62}, 0, kLow, kHigh), sum < 0 ? -1 : 1);
    EXPECT_EQ(requantiseFloat(sum, 1e30f, 0, kLow, kHigh), want);
  }
}

} // namespace
