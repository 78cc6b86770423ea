//===- Reciprocal_test.cpp - Division by two multiplications --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/Reciprocal.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace tessera::device;

namespace {

/// Returns how many of all 24-bit numbers have a wrong quotient by |divisor|.
int64_t wrongQuotients(float divisor, ReciprocalPair pair) {
  int64_t wrong = 0;
  for (int64_t x = 1 << 23; x < 1 << 24; ++x) {
    float value = float(x);
    wrong += std::fma(value, pair.high, value * pair.low) != value / divisor;
  }
  return wrong;
}

ReciprocalPair pairOf(float divisor) {
  float high = 1.0f / divisor;
  float low = std::fma(-high, divisor, 1.0f) / divisor;
  if (low != 0 && std::signbit(low) != std::signbit(high)) {
    high = std::nextafter(high, 0.0f), low = std::fma(-high, divisor, 1.0f) / divisor;
  }
  return {high, low};
}

TEST(Quotient, AgreesWithTrialOfAllNumbers) {
  std::mt19937 random(7);
  int exact = 0, rejected = 0;
  for (int i = 0; i < 4000 && (exact < 8 || rejected < 4); ++i) {
    float divisor = std::ldexp(1.0f + float(random() % (1 << 23)) * 0x1p-23f, int(random() % 40) - 30);
    std::optional<ReciprocalPair> pair = exactReciprocal(divisor);
    if (pair && exact < 8) {
      EXPECT_EQ(wrongQuotients(divisor, *pair), 0) << divisor;
      ++exact;
    } else if (!pair && rejected < 4) {
      // Rejected divisors really have a wrong quotient: no divisor is rejected without need.
      EXPECT_GT(wrongQuotients(divisor, pairOf(divisor)), 0) << divisor;
      ++rejected;
    }
  }
  EXPECT_EQ(exact, 8);
  EXPECT_EQ(rejected, 4);
}

TEST(Quotient, HoldsForNearlyAllDivisorsAndRandomNumbers) {
  std::mt19937 random(8);
  int rejected = 0;
  for (int i = 0; i < 2000; ++i) {
    float sign = random() % 2 ? 1.0f : -1.0f;
    float divisor = sign * std::ldexp(1.0f + float(random() % (1 << 23)) * 0x1p-23f, int(random() % 40) - 30);
    std::optional<ReciprocalPair> pair = exactReciprocal(divisor);
    rejected += !pair;
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (float x : {kInfinity, -kInfinity, 0.0f}) {
      ASSERT_TRUE(!pair || std::fma(x, pair->high, x * pair->low) == x / divisor) << x << " / " << divisor;
    }
    for (int j = 0; pair && j < 500; ++j) {
      float x = std::ldexp(float(int32_t(random())), int(random() % 60) - 40);
      ASSERT_EQ(std::fma(x, pair->high, x * pair->low), x / divisor) << x << " / " << divisor;
    }
  }
  EXPECT_LT(rejected, 200);
}

TEST(Quotient, OfPowersOfTwoIsAProduct) {
  for (float divisor : {1.0f, 0.5f, -4.0f, 0x1p-30f}) {
    std::optional<ReciprocalPair> pair = exactReciprocal(divisor);
    ASSERT_TRUE(pair);
    EXPECT_EQ(pair->high, 1.0f / divisor);
    EXPECT_EQ(pair->low, 0.0f);
  }
  EXPECT_FALSE(exactReciprocal(0.0f) || exactReciprocal(0x1p-70f) || exactReciprocal(0x1p70f) ||
               exactReciprocal(std::nanf("")));
}

} // namespace
