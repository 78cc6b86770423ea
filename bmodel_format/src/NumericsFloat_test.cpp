//===- NumericsFloat_test.cpp - The specified functions against libm ------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmodel/numerics_float.h"
#include "gtest/gtest.h"
#include <limits>

using namespace bmodel::numerics;

namespace {

/// Returns the largest error of f over [low, high], in units in the last place of max(result, least).
template <typename F, typename G>
double worst(F f, G exact, double low, double high, double least = 0x1p-126) {
  double most = 0;
  for (int i = 0; i <= 200000; ++i) {
    float x = static_cast<float>(low + (high - low) * i / 200000);
    double want = exact(static_cast<double>(x));
    double unit = std::ldexp(1.0, std::ilogb(std::fmax(std::fabs(want), least)) - 23);
    most = std::fmax(most, std::fabs(f(Single{x}).v - want) / unit);
  }
  return most;
}

double sigmoidExact(double x) { return 1 / (1 + std::exp(-x)); }

TEST(NumericsFloat, FunctionsAreAccurate) {
  EXPECT_LT(worst([](Single x) { return exp(x); }, [](double x) { return std::exp(x); }, -87, 88.5), 1.5);
  EXPECT_LT(worst([](Single x) { return expOfNegative(x); }, [](double x) { return std::exp(x); }, -86, 0), 2);
  EXPECT_LT(worst([](Single x) { return log(x); }, [](double x) { return std::log(x); }, 1e-30, 1e30), 1.5);
  EXPECT_LT(worst([](Single x) { return log(x); }, [](double x) { return std::log(x); }, 0.4, 2.5, 0x1p-20), 2);
  EXPECT_LT(worst([](Single x) { return tanh(x); }, [](double x) { return std::tanh(x); }, -12, 12), 4);
  EXPECT_LT(worst([](Single x) { return erf(x); }, [](double x) { return std::erf(x); }, -5, 5), 4);
  EXPECT_LT(worst([](Single x) { return sigmoid(x); }, sigmoidExact, -87, 88), 4);
}

TEST(NumericsFloat, Ends) {
  float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(exp(Single{infinity}).v, infinity);
  EXPECT_EQ(exp(Single{-infinity}).v, 0.0f);
  EXPECT_EQ(exp(Single{100.0f}).v, infinity);
  EXPECT_GT(exp(Single{-100.0f}).v, 0.0f); // subnormal
  EXPECT_TRUE(std::isnan(exp(Single{nan}).v));
  EXPECT_EQ(expOfNegative(Single{-87.5f}).v, 0.0f);
  EXPECT_EQ(log(Single{0.0f}).v, -infinity);
  EXPECT_EQ(log(Single{infinity}).v, infinity);
  EXPECT_TRUE(std::isnan(log(Single{-1.0f}).v));
  EXPECT_EQ(tanh(Single{50.0f}).v, 1.0f);
  EXPECT_TRUE(std::signbit(tanh(Single{-0.0f}).v));
  EXPECT_EQ(sigmoid(Single{-std::numeric_limits<float>::max()}).v, 0.0f);
  EXPECT_EQ(sigmoid(Single{-infinity}).v, 0.0f);
  EXPECT_EQ(sigmoid(Single{infinity}).v, 1.0f);
  EXPECT_GT(sigmoid(Single{-87.0f}).v, 0.0f);
  EXPECT_TRUE(std::isnan(sigmoid(Single{nan}).v));
  EXPECT_EQ(erf(Single{-9.0f}).v, -1.0f);
}

TEST(NumericsFloat, SumsHaveSixteenParts) {
  // Adding 1 to 2^24 has no effect; in another partial sum the 1 survives until the tree.
  OrderedSum one, other;
  one.addAt(0, {0x1p24f});
  one.addAt(16, {1.0f});
  one.addAt(8, {-0x1p24f});
  EXPECT_EQ(one.total().v, 0.0f);
  other.addAt(0, {0x1p24f});
  other.addAt(1, {1.0f});
  other.addAt(8, {-0x1p24f});
  EXPECT_EQ(other.total().v, 1.0f);
  OrderedSum all;
  for (int i = 0; i < 35; ++i) {
    all.add({1.0f});
  }
  EXPECT_EQ(all.total().v, 35.0f);
}

} // namespace
