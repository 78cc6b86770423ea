//===- PlaceBuffers_test.cpp - Placements are valid, tight and repeatable ---===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Transforms/PlaceBuffers.h"

#include "gtest/gtest.h"
#include <chrono>
#include <random>
#include <vector>

using namespace tessera::device;

namespace {

void expectValid(const std::vector<Buffer> &buffers, const Placement &placement) {
  ASSERT_EQ(placement.offsets.size(), buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(placement.offsets[i] % 64, 0);
    EXPECT_LE(placement.offsets[i] + buffers[i].bytes, placement.bytes);
    for (size_t j = 0; j < i; ++j) {
      bool together = buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
      bool overlap = placement.offsets[i] < placement.offsets[j] + buffers[j].bytes &&
                     placement.offsets[j] < placement.offsets[i] + buffers[i].bytes;
      EXPECT_FALSE(together && overlap) << i << " and " << j;
    }
  }
}

TEST(PlaceBuffers, Empty) { EXPECT_EQ(placeBuffers({}, 64).bytes, 0); }

TEST(PlaceBuffers, ChainNeedsTwo) {
  std::vector<Buffer> chain;
  for (int64_t i = 0; i < 10; ++i) {
    chain.push_back({100, i, i + 1});
  }
  Placement placement = placeBuffers(chain, 64);
  expectValid(chain, placement);
  EXPECT_EQ(placement.bytes, 256);
  EXPECT_EQ(lowerBound(chain, 64), 256);
}

TEST(PlaceBuffers, SearchBeatsBothOrders) {
  // Neither order alone reaches the lower bound.
  std::vector<Buffer> buffers = {{192, 0, 2}, {64, 0, 5}, {128, 2, 4}, {128, 1, 1},
                                 {256, 4, 6}, {64, 3, 7}, {192, 6, 8}, {128, 5, 6}};
  Placement placement = placeBuffers(buffers, 64);
  expectValid(buffers, placement);
  EXPECT_EQ(placement.bytes, lowerBound(buffers, 64));
}

TEST(PlaceBuffers, RandomIsValidTightAndRepeatable) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<Buffer> buffers;
    for (int i = 0; i < 60; ++i) {
      int64_t first = random() % 60;
      buffers.push_back({int64_t(random() % 5000), first, int64_t(first + random() % 8)});
    }
    Placement placement = placeBuffers(buffers, 64);
    expectValid(buffers, placement);
    EXPECT_LE(placement.bytes, lowerBound(buffers, 64) * 1.25);
    EXPECT_EQ(placeBuffers(buffers, 64).offsets, placement.offsets);
  }
}

TEST(PlaceBuffers, LargeGraphStaysBounded) {
  std::mt19937 random(5);
  std::vector<Buffer> buffers;
  for (int64_t i = 0; i < 5000; ++i) {
    buffers.push_back({int64_t(random() % 100000), i, int64_t(i + 1 + random() % 20)});
  }
  expectValid(buffers, placeBuffers(buffers, 64));
}

} // namespace
