// SPDX-License-Identifier: Apache-2.0
//===- Order_test.cpp - Waits of random streams: sufficient and minimal ----===//
#include "bmodel/npu/latency.h"

#include "bmodel_format/test/RandomStream.h"
#include "bmodel_format/test/TestChip.h"

#include <gtest/gtest.h>

using namespace bmodel;
using namespace bmodel::npu;

namespace {

class OnEachChip : public testing::TestWithParam<const char *> {
protected:
  const Chip chip = GetParam() == std::string("odd") ? oddChip() : chipNamed(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Order, OnEachChip, testing::Values("npu-edge", "npu-base", "npu-pro", "odd"),
                         [](const auto &each) {
                           std::string name = each.param;
                           return name.substr(name.find('-') + 1);
                         });

} // namespace

TEST_P(OnEachChip, AssignedWaitsAreEnough) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    RandomStream random(chip, seed);
    Status status;
    const std::vector<Descriptor> &stream = random.commands;
    EXPECT_TRUE(checkOperands(stream.data(), stream.size(), chip, random.sizes(), status)) << status.message;
    EXPECT_TRUE(checkOrder(stream.data(), stream.size(), chip, random.sizes(), status)) << status.message;
  }
}

TEST_P(OnEachChip, EachAssignedWaitIsNeeded) {
  size_t waits = 0;
  for (unsigned seed = 0; seed < 5; ++seed) {
    RandomStream random(chip, seed);
    for (size_t i = 0; i < random.commands.size(); ++i) {
      if (random.commands[i].header.wait) {
        std::vector<Descriptor> changed = random.commands;
        --changed[i].header.wait;
        Status status;
        EXPECT_FALSE(checkOrder(changed.data(), changed.size(), chip, random.sizes(), status)) << seed << " " << i;
        ++waits;
      }
    }
  }
  EXPECT_GT(waits, 100u);
}

TEST_P(OnEachChip, LegalOrdersKeepQueuesAndWaits) {
  RandomStream random(chip, 1);
  const std::vector<Descriptor> &stream = random.commands;
  std::vector<size_t> first = legalOrder(stream.data(), stream.size(), 1);
  EXPECT_EQ(first, legalOrder(stream.data(), stream.size(), 1));
  size_t others = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<size_t> order = legalOrder(stream.data(), stream.size(), seed);
    others += order != first;
    uint32_t done[2] = {};
    for (size_t i : order) {
      int queue = int(findCommand(stream[i].header.opcode)->queue);
      EXPECT_EQ(stream[i].header.id, ++done[queue]);
      EXPECT_LE(stream[i].header.wait, done[1 - queue]);
    }
    EXPECT_EQ(done[0] + done[1], stream.size());
  }
  EXPECT_GT(others, 10u);
}

TEST_P(OnEachChip, TheScheduleKeepsWaits) {
  RandomStream random(chip, 2);
  const std::vector<Descriptor> &stream = random.commands;
  std::vector<Cost> costs;
  for (const Descriptor &command : stream) {
    costs.push_back(costOf(command, chip));
  }
  std::vector<Span> spans = schedule(stream.data(), costs.data(), stream.size(), chip);
  std::vector<double> ends[2] = {{0}, {0}}; // by queue and id
  for (size_t i = 0; i < stream.size(); ++i) {
    int queue = int(findCommand(stream[i].header.opcode)->queue);
    EXPECT_GE(spans[i].begin, ends[queue].back());
    EXPECT_GE(spans[i].begin, ends[1 - queue][stream[i].header.wait]);
    EXPECT_NEAR(spans[i].end - spans[i].begin, costs[i].cycles + spans[i].stalled, 1e-6 * costs[i].cycles);
    ends[queue].push_back(spans[i].end);
  }
}
