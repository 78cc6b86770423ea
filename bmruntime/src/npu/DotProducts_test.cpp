// SPDX-License-Identifier: Apache-2.0
//===- DotProducts_test.cpp - Sums for every width of vectors -------------===//
#include "DotProducts.h"

#include "bmodel/cpu_features.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

using namespace bmrt::npu;

namespace {

std::mt19937 generator(11);

std::vector<int16_t> randomPairs(size_t count) {
  std::vector<int16_t> result(count * 2);
  for (int16_t &each : result) {
    // Use the extreme values often: they produce the largest products and sums.
    each = generator() % 4 ? int16_t(generator()) : generator() % 2 ? INT16_MIN : INT16_MAX;
  }
  return result;
}

void expectPairSums(decltype(&sumPairs) sumOf) {
  constexpr uint64_t kDepth = 37, kStride = 3 * kTile;
  std::vector<int16_t> weights = randomPairs(kDepth * kOutputs), panel = randomPairs(kDepth * kStride);
  std::vector<int32_t> total(kOutputs * kStride);
  sumOf(weights.data(), panel.data() + 2 * kTile, kStride, kDepth, total.data() + kTile, kStride);
  for (uint64_t o = 0; o < kOutputs; ++o) {
    for (uint64_t p = 0; p < kStride; ++p) {
      uint32_t wanted = 0;
      for (uint64_t k = 0; k < 2 * kDepth && p / kTile == 1; ++k) {
        wanted += uint32_t(weights[(k / 2 * kOutputs + o) * 2 + k % 2] * panel[(k / 2 * kStride + p) * 2 + k % 2]);
      }
      ASSERT_EQ(uint32_t(total[o * kStride + p]), wanted) << o << " " << p;
    }
  }
}

} // namespace

TEST(Products, PairsAreSummedAlikeByEveryWidth) {
  expectPairSums(sumPairs);
  expectPairSums(sumProducts);
#if defined(__x86_64__)
  if (bmodel::cpuFeatures() & bmodel::BM_CPU_AVX2) {
    expectPairSums(sumPairsAvx2);
  }
  if (bmodel::cpuFeatures() & bmodel::BM_CPU_AVX512VNNI) {
    expectPairSums(sumPairsAvx512);
  }
#endif
}

/// The products are not representable as float, so the rounding of each step is visible.
TEST(Products, FusedSumsRoundOnce) {
  constexpr uint64_t kDepth = 37;
  std::vector<float> weights(kDepth * kOutputs), panel(kDepth * kTile), fused(kOutputs * kTile), plain(fused);
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = 1.0f + float(i * 7919 % 4001) * 0x1p-23f;
  }
  for (size_t i = 0; i < panel.size(); ++i) {
    panel[i] = float(i % 3) - 1.0f + float(i * 104729 % 997) * 0x1p-22f;
  }
  sumFusedProducts(weights.data(), panel.data(), kTile, kDepth, fused.data(), kTile);
  sumProducts(weights.data(), panel.data(), kTile, kDepth, plain.data(), kTile);
  bool differ = false;
  for (uint64_t o = 0; o < kOutputs; ++o) {
    for (uint64_t p = 0; p < kTile; ++p) {
      float wanted = 0;
      for (uint64_t k = 0; k < kDepth; ++k) {
        wanted = std::fma(weights[k * kOutputs + o], panel[k * kTile + p], wanted);
      }
      ASSERT_EQ(fused[o * kTile + p], wanted) << o << " " << p;
      differ = differ || plain[o * kTile + p] != wanted;
    }
  }
  EXPECT_TRUE(differ);
}

TEST(Products, TheLargestIsNaNWhereOneIs) {
  float nan = std::numeric_limits<float>::quiet_NaN(), low = -std::numeric_limits<float>::infinity();
  std::vector<float> first(32, 1), second(32, 2), sums(32);
  first[3] = nan, second[5] = nan, first[7] = 3, first[9] = second[9] = low;
  const float *seen[] = {first.data(), second.data()};
  largestTap(sums.data(), low, seen, 2, 32);
  EXPECT_TRUE(std::isnan(sums[3]) && std::isnan(sums[5]));
  EXPECT_EQ(sums[7], 3);
  EXPECT_EQ(sums[8], 2);
  EXPECT_EQ(sums[9], low);
}

TEST(Products, OfTwoZerosTheLargestHasNoSign) {
  std::vector<float> first(32, -0.0f), second(32, -0.0f), sums(32);
  first[3] = second[5] = 0;
  const float *seen[] = {first.data(), second.data()};
  largestTap(sums.data(), -std::numeric_limits<float>::infinity(), seen, 2, 32);
  EXPECT_FALSE(std::signbit(sums[3]) || std::signbit(sums[5]));
  EXPECT_TRUE(std::signbit(sums[7]));
}
