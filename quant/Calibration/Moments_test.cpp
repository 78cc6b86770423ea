// SPDX-License-Identifier: Apache-2.0
//===- Moments_test.cpp - Rows, moments, factor and rounding --------------===//
#include "quant/Calibration/FeedBack.h"
#include "quant/Calibration/Moments.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>

using namespace tessera::quant;

namespace {

std::vector<float> randomValues(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.2f, 1.0f);
  std::vector<float> values(static_cast<size_t>(count));
  for (float &value : values) {
    value = normal(generator);
  }
  return values;
}

std::vector<int64_t> firstNumbers(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// Returns integral values, which a grid with scale 1 represents exactly.
std::vector<float> wholeNumbers(int64_t count, unsigned seed) {
  std::vector<float> values = randomValues(count, seed);
  for (float &value : values) {
    value = std::nearbyint(value * 20);
  }
  return values;
}

TEST(Patches, RowsAreWhatTheWindowCovers) {
  // [2, 4, 5, 6] in two groups, 3 x 2 taps, strides 2 and 1, dilations 1 and 2, pads 1 0 2 1.
  const std::vector<float> input = randomValues(2 * 4 * 5 * 6, 1);
  const Patches patches({2, 4, 5, 6}, {2, {3, 2}, {2, 1}, {1, 0, 2, 1}, {1, 2}});
  ASSERT_EQ(patches.depth(), 2 * 6);
  ASSERT_EQ(patches.positions(), 2 * 3 * 5);
  for (int64_t group = 0; group < 2; ++group) {
    for (int64_t position = 0; position < patches.positions(); ++position) {
      std::vector<float> row(12);
      patches.gather(input.data(), patches.locate({position}), group, row.data(), 12);
      const int64_t n = position / 15, y = position / 5 % 3, x = position % 5;
      for (int64_t k = 0; k < 12; ++k) {
        const int64_t c = group * 2 + k / 6, h = y * 2 - 1 + k % 6 / 2, w = x + k % 2 * 2;
        const bool inside = h >= 0 && h < 5 && w < 6;
        EXPECT_EQ(row[size_t(k)], inside ? input[size_t(((n * 4 + c) * 5 + h) * 6 + w)] : 0.0f);
      }
    }
  }
}

TEST(Patches, RejectsWhatDoesNotFit) {
  EXPECT_THROW(Patches({1, 3, 4, 4}, {2, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}}), std::invalid_argument);
  EXPECT_THROW(Patches({1, 3, 4, 4}, {1, {5, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}}), std::invalid_argument);
  EXPECT_THROW(Patches({1, 3, 4}, {1, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}}), std::invalid_argument);
}

TEST(Moments, AreSumsOfProducts) {
  for (int64_t depth : {1, 5, 31, 32, 33, 70}) {
    const int64_t rows = 50;
    const std::vector<float> input = wholeNumbers(rows * depth, unsigned(depth));
    const Patches patches({rows, depth}, {});
    Moments moments(1, depth, /*second=*/true), first(1, depth, /*second=*/false);
    for (Moments *some : {&moments, &first}) {
      some->add(patches, input.data(), firstNumbers(20), Grid{1.0f, 0, -127});
      some->add(patches, input.data() + 20 * depth, firstNumbers(30), std::nullopt);
      EXPECT_EQ(some->count, rows);
    }
    EXPECT_TRUE(first.products().empty());
    EXPECT_EQ(first.exact, moments.exact);
    const std::vector<float> products = moments.products();
    for (int64_t i = 0; i < depth; ++i) {
      double sum = 0;
      for (int64_t r = 0; r < rows; ++r) {
        sum += input[size_t(r * depth + i)];
      }
      EXPECT_EQ(moments.exact[size_t(i)], sum);
      EXPECT_EQ(moments.rounded[size_t(i)], sum);
      for (int64_t j = 0; j < depth; ++j) {
        double product = 0;
        for (int64_t r = 0; r < rows; ++r) {
          product += double(input[size_t(r * depth + i)]) * input[size_t(r * depth + j)];
        }
        ASSERT_EQ(products[size_t(i * depth + j)], float(product)) << depth << " " << i << " " << j;
      }
    }
  }
}

TEST(Moments, RoundsAndClips) {
  const std::vector<float> input = {0.3f, -0.3f, 70.0f, 0.2f, 0.1f, -70.0f};
  Moments moments(1, 3, /*second=*/true);
  moments.add(Patches({2, 3}, {}), input.data(), {0, 1}, Grid{0.5f, 0, -127});
  EXPECT_EQ(moments.exact, (std::vector<double>{double(0.3f) + 0.2f, double(-0.3f) + 0.1f, 63.5 - 63.5}));
  EXPECT_EQ(moments.rounded, (std::vector<double>{0.5, -0.5, 0.0}));
}

struct Layer {
  int64_t depth, rows;
  std::vector<float> weights, moments;
};

/// Returns a layer whose inputs are linear mixtures of a few sources.
Layer correlated(int64_t depth, int64_t rows) {
  const int64_t causes = depth / 4 + 1, samples = 6 * depth;
  const std::vector<float> mixing = randomValues(causes * depth, 3), cause = randomValues(samples * causes, 4);
  std::vector<float> input = randomValues(samples * depth, 5);
  for (int64_t s = 0; s < samples; ++s) {
    for (int64_t k = 0; k < depth; ++k) {
      input[size_t(s * depth + k)] *= 0.1f;
      for (int64_t c = 0; c < causes; ++c) {
        input[size_t(s * depth + k)] += cause[size_t(s * causes + c)] * mixing[size_t(c * depth + k)];
      }
    }
  }
  Layer layer{depth, rows, randomValues(rows * depth, 6), std::vector<float>(size_t(depth * depth))};
  for (int64_t i = 0; i < depth; ++i) {
    for (int64_t j = 0; j < depth; ++j) {
      double sum = 0;
      for (int64_t s = 0; s < samples; ++s) {
        sum += double(input[size_t(s * depth + i)]) * input[size_t(s * depth + j)];
      }
      layer.moments[size_t(i * depth + j)] = float(sum / double(samples));
    }
  }
  return layer;
}

double lossOf(const Layer &layer, const float *errors, double damping) {
  double sum = 0;
  for (int64_t i = 0; i < layer.depth; ++i) {
    for (int64_t j = 0; j < layer.depth; ++j) {
      sum += double(errors[i]) * errors[j] * (layer.moments[size_t(i * layer.depth + j)] + (i == j ? damping : 0));
    }
  }
  return sum;
}

TEST(FeedBack, LowersTheErrorAndTellsIt) {
  for (int64_t depth : {2, 9, 32, 33, 100}) {
    const Layer layer = correlated(depth, 7);
    // Each row has two scales, one for each half of its weights.
    const std::vector<float> scales = {0.5f, 0.25f, 0.5f, 0.5f, 0.25f, 0.5f, 0.4f,
                                       0.4f, 0.1f,  0.3f, 0.2f, 0.2f,  0.7f, 0.6f};
    const float damping = 0.05f;
    const FeedBack feedBack(layer.moments.data(), depth, damping);
    std::vector<int8_t> integers(size_t(7 * depth));
    std::vector<double> losses(7);
    feedBack.round({layer.weights.data(), scales.data(), 7, (depth + 1) / 2, -127, 127, false}, integers.data(),
                   losses.data());
    double all = 0, nearest = 0;
    for (int64_t n = 0; n < 7; ++n) {
      std::vector<float> errors, plain;
      for (int64_t k = 0; k < depth; ++k) {
        const float weight = layer.weights[size_t(n * depth + k)];
        const float scale = scales[size_t(n * 2 + (k >= (depth + 1) / 2))];
        errors.push_back(float(integers[size_t(n * depth + k)]) * scale - weight);
        plain.push_back(std::nearbyint(weight / scale) * scale - weight);
      }
      const double loss = lossOf(layer, errors.data(), damping);
      EXPECT_NEAR(losses[size_t(n)], loss, 1e-3 * loss + 1e-6) << depth;
      all += loss, nearest += lossOf(layer, plain.data(), damping);
    }
    EXPECT_LE(all, (depth > 2 ? 0.6 : 1.0001) * nearest) << depth;
  }
}

TEST(FeedBack, StaysInRange) {
  const Layer layer = correlated(40, 1);
  const std::vector<float> tiny = {1e-3f}, wide = {0.1f};
  std::vector<int8_t> integers(40), within(40);
  double loss;
  const FeedBack feedBack(layer.moments.data(), 40, 0.05f);
  feedBack.round({layer.weights.data(), tiny.data(), 1, 40, -8, 7, true}, integers.data(), &loss);
  feedBack.round({layer.weights.data(), wide.data(), 1, 40, -8, 7, false}, within.data(), &loss);
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(integers[i], layer.weights[i] > 0 ? 7 : -8);
    EXPECT_TRUE(within[i] >= -8 && within[i] <= 7);
  }
}

TEST(FeedBack, GroupsAndWaysAreRoundedApart) {
  const Layer a = correlated(12, 3), b = correlated(12, 3);
  std::vector<float> weights = a.weights, moments = a.moments;
  weights.insert(weights.end(), b.weights.begin(), b.weights.end());
  moments.insert(moments.end(), b.moments.begin(), b.moments.end());
  for (size_t i = 144; i < 288; ++i) {
    moments[i] *= 3;
  }
  const std::vector<float> damping = {0.1f, 0.2f},
                           scales = {0.5f, 0.4f, 0.3f, 0.2f, 0.1f, 0.6f, 0.7f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f};
  std::vector<int8_t> integers(2 * 2 * 3 * 12), one(12);
  std::vector<double> losses(2 * 2 * 3);
  roundGroups({weights.data(), moments.data(), damping.data(), scales.data(), 2, 3, 12, 2, 12, -127, 127, false},
              integers.data(), losses.data());
  for (size_t i = 0; i < 12; ++i) { // i enumerates (way, group, row)
    const size_t group = i / 3 % 2, row = i % 3;
    double loss;
    FeedBack(moments.data() + group * 144, 12, damping[group])
        .round({weights.data() + (group * 3 + row) * 12, &scales[i], 1, 12, -127, 127, false}, one.data(), &loss);
    EXPECT_EQ(one, std::vector<int8_t>(integers.begin() + long(i * 12), integers.begin() + long(i * 12 + 12))) << i;
    EXPECT_EQ(loss, losses[i]);
  }
}

TEST(FeedBack, SolvesForWeights) {
  const Layer layer = correlated(45, 3);
  const float damping = 0.5f;
  std::vector<float> right(3 * 45), solution(3 * 45);
  for (size_t n = 0; n < 3; ++n) {
    for (size_t k = 0; k < 45; ++k) {
      for (size_t j = 0; j < 45; ++j) {
        right[n * 45 + k] += layer.weights[n * 45 + j] * (layer.moments[j * 45 + k] + (j == k ? damping : 0));
      }
    }
  }
  solveGroups(layer.moments.data(), &damping, right.data(), 1, 3, 45, solution.data());
  for (size_t i = 0; i < solution.size(); ++i) {
    EXPECT_NEAR(solution[i], layer.weights[i], 2e-3f) << i;
  }
}

TEST(CrossMoments, AreSumsOfProductsAtTheSamePositions) {
  // The rows of a convolution: 2 groups, 1 channel, 2 taps. The rows of its outputs: 3 channels per group.
  const Patches in({1, 2, 5}, {2, {2}, {1}, {0, 0}, {1}}), out({1, 6, 4}, {2, {1}, {1}, {0, 0}, {1}});
  ASSERT_EQ(in.positions(), out.positions());
  std::vector<float> x(10), y(24);
  std::iota(x.begin(), x.end(), 1.0f);
  std::iota(y.begin(), y.end(), -7.0f);
  CrossMoments moments(2, 3, 2);
  moments.add(out, y.data(), in, x.data(), {1, 3});
  moments.add(out, y.data(), in, x.data(), {0});
  EXPECT_EQ(moments.count, 3);
  const std::vector<float> products = moments.products();
  for (size_t group = 0; group < 2; ++group) {
    for (size_t channel = 0; channel < 3; ++channel) {
      for (size_t tap = 0; tap < 2; ++tap) {
        float sum = 0;
        for (size_t at : {0, 1, 3}) {
          sum += y[(group * 3 + channel) * 4 + at] * x[group * 5 + at + tap];
        }
        EXPECT_EQ(products[(group * 3 + channel) * 2 + tap], sum);
      }
    }
  }
}

TEST(FeedBack, RejectsWhatIsNoNumber) {
  const std::vector<float> good = {1, 0, 0, 1}, bad = {1, 0, 0, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_THROW(FeedBack(bad.data(), 2, 0.1f), std::invalid_argument);
  EXPECT_THROW(FeedBack(good.data(), 2, 0.0f), std::invalid_argument);
}

} // namespace
