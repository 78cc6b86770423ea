// SPDX-License-Identifier: Apache-2.0
//===- Histogram_test.cpp - Counts, extremes, merging, bad values ---------===//
#include "quant/Calibration/Histogram.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <random>

using tessera::quant::fakeQuantise;
using tessera::quant::Histogram;

namespace {

std::vector<float> randomHistogramValues(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.3f, 2.0f);
  std::vector<float> values(count);
  for (float &value : values) {
    value = generator() % 3 ? normal(generator) : 0.0f;
  }
  return values;
}

std::map<uint32_t, uint64_t> countNaively(const std::vector<float> &values) {
  std::map<uint32_t, uint64_t> counts;
  for (float value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    ++counts[bits >> Histogram::kShift];
  }
  return counts;
}

std::map<uint32_t, uint64_t> countsOf(const Histogram &histogram) {
  std::map<uint32_t, uint64_t> counts;
  for (const Histogram::Bin &bin : histogram.bins()) {
    counts[bin.index] = bin.count;
  }
  return counts;
}

TEST(Histogram, CountsAsTheNaiveOne) {
  for (size_t count : {0u, 1u, 7u, 2047u, 2048u, 2049u, 50001u}) {
    const std::vector<float> values = randomHistogramValues(count, unsigned(count));
    Histogram histogram;
    histogram.observe(values.data(), count, 0);
    EXPECT_EQ(countsOf(histogram), countNaively(values));
    EXPECT_EQ(histogram.finite, count);
    if (count) {
      EXPECT_EQ(histogram.min(), *std::min_element(values.begin(), values.end()));
      EXPECT_EQ(histogram.max(), *std::max_element(values.begin(), values.end()));
    }
  }
}

TEST(Histogram, SplitsAndOrdersAgree) {
  const std::vector<float> values = randomHistogramValues(10000, 3);
  Histogram whole, merged, left, right;
  whole.observe(values.data(), values.size(), 5);
  right.observe(values.data() + 1234, values.size() - 1234, 5);
  left.observe(values.data(), 1234, 5);
  merged.merge(right);
  merged.merge(left);
  EXPECT_EQ(countsOf(merged), countsOf(whole));
  EXPECT_EQ(merged.lowest, whole.lowest);
  EXPECT_EQ(merged.highest, whole.highest);
  EXPECT_EQ(merged.finite, whole.finite);
}

TEST(Histogram, SamplesOfAnySizeHaveOneVote) {
  Histogram all;
  for (size_t count : {3u, 4096u, 50000u}) {
    Histogram sample;
    const std::vector<float> values(count, float(count));
    sample.observe(values.data(), count, 0);
    const float rare = -1;
    sample.observe(&rare, count == 50000, 0);
    all.mergeSample(sample);
  }
  std::map<uint32_t, uint64_t> counts = countsOf(all);
  for (float value : {3.0f, 4096.0f, 50000.0f}) {
    EXPECT_NEAR(double(counts[countNaively({value}).begin()->first]), double(Histogram::kVotes), 400) << value;
  }
  EXPECT_EQ(counts[countNaively({-1.0f}).begin()->first], 336u); // kVotes / 50001
  EXPECT_EQ(all.finite, 54100u);
  EXPECT_EQ(all.min(), -1);
}

TEST(Histogram, BadValuesAreCountedApart) {
  std::vector<float> values = randomHistogramValues(5000, 4);
  const std::vector<float> good(values.begin(), values.end());
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  // A NaN whose only mantissa bits are low ones shares the leading bits, and thus the bin, of infinity.
  uint32_t bits = 0x7f800001;
  float lowNan;
  std::memcpy(&lowNan, &bits, sizeof(bits));
  values.insert(values.begin() + 2500, {nan, inf, -inf, -nan, lowNan});
  Histogram histogram;
  histogram.observe(good.data(), good.size(), 1);
  histogram.observe(values.data(), values.size(), 9);
  histogram.observe(values.data(), values.size(), 7);
  EXPECT_EQ(histogram.nan, 6u);
  EXPECT_EQ(histogram.infinite, 4u);
  EXPECT_EQ(histogram.firstBadSample, 7u);
  EXPECT_EQ(histogram.finite, 3 * good.size());
  EXPECT_EQ(histogram.max(), *std::max_element(good.begin(), good.end()));
  EXPECT_TRUE(std::isfinite(histogram.min()));
}

TEST(Histogram, NegativesAndDenormals) {
  const float values[] = {-1.0f, -2.0f, -0.0f, 1e-42f, -1e-42f, -3e38f};
  Histogram histogram;
  histogram.observe(values, 6, 0);
  EXPECT_EQ(histogram.min(), -3e38f);
  EXPECT_EQ(histogram.max(), 1e-42f);
  EXPECT_EQ(histogram.nan + histogram.infinite, 0u);
}

TEST(FakeQuantise, EqualsTheFormula) {
  std::vector<float> values = randomHistogramValues(3000, 11);
  values.insert(values.end(), {0.25f, 0.75f, 1.25f, -0.25f, 1e30f, -1e30f, -0.0f});
  for (auto [scale, zero] : {std::pair(0.5f, 0), std::pair(0.031f, -128), std::pair(0.02f, 17)}) {
    std::vector<float> rounded = values;
    fakeQuantise(rounded.data(), rounded.size(), scale, zero, -128, 127);
    for (size_t i = 0; i < values.size(); ++i) {
      const float q = std::nearbyint(std::min(std::max(values[i] / scale, float(-128 - zero)), float(127 - zero)));
      ASSERT_EQ(rounded[i], q * scale) << values[i];
    }
  }
}

TEST(Distance, LeavesOutWhatIsNotFinite) {
  std::vector<float> wanted = randomHistogramValues(1003, 5), got = randomHistogramValues(1003, 6);
  wanted[3] = std::numeric_limits<float>::infinity(), got[40] = std::numeric_limits<float>::quiet_NaN();
  double noise = 0, power = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (i != 3 && i != 40) {
      noise += std::pow(double(got[i]) - double(wanted[i]), 2), power += std::pow(double(wanted[i]), 2);
    }
  }
  const tessera::quant::Distance found = tessera::quant::distance(wanted.data(), got.data(), wanted.size());
  EXPECT_NEAR(found.noise, noise, 1e-12 * noise);
  EXPECT_NEAR(found.power, power, 1e-12 * power);
}

} // namespace
