//===- Decide_test.cpp - Phases against exhaustive search -----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Partition/Decide.h"

#include <gtest/gtest.h>
#include <random>

using namespace tessera::partition;

namespace {

constexpr double kMicro = 1e-6;

/// Builds a chain of ops; times in microseconds.
Problem chain(const std::vector<std::pair<double, double>> &times, double transfer, double handOver) {
  Problem problem;
  problem.handOver = {handOver * kMicro, 0};
  for (uint32_t i = 0; i < times.size(); ++i) {
    problem.ops.push_back({{times[i].first == kCannot ? kCannot : times[i].first * kMicro, times[i].second * kMicro}});
    problem.values.push_back({i, {}, {transfer * kMicro, 0}});
    if (i) {
      problem.values[i - 1].consumers.push_back(i);
    }
  }
  return problem;
}

std::string sidesOf(const Decision &decision) {
  std::string text;
  for (uint32_t target : decision.target) {
    text += target ? 'h' : 'n';
  }
  return text;
}

} // namespace

TEST(Decide, OnlyWhatTheChipCannotGoesToTheHost) {
  Decision result = decide(chain({{50, 900}, {50, 900}, {kCannot, 30}, {50, 900}}, 1, 20));
  EXPECT_EQ(sidesOf(result), "nnhn");
  EXPECT_EQ(result.phases.size(), 3u);
  EXPECT_NEAR(result.seconds / kMicro, 150 + 30 + 2 + 40, 1e-6);
}

TEST(Decide, CheapOpsStayWithTheirNeighbours) {
  // A cheap op between two ops of the host stays on the host; an expensive one runs on the chip.
  EXPECT_EQ(sidesOf(decide(chain({{50, 900}, {kCannot, 30}, {1, 5}, {kCannot, 30}, {50, 900}}, 1, 20))), "nhhhn");
  EXPECT_EQ(sidesOf(decide(chain({{50, 900}, {kCannot, 30}, {50, 900}, {kCannot, 30}, {50, 900}}, 1, 20))), "nhnhn");
  EXPECT_EQ(sidesOf(decide(chain({{50, 900}, {1, 5}, {1, 5}, {50, 900}}, 1, 20))), "nnnn");
}

TEST(Decide, EqualCostsGoToThePreferredTarget) { EXPECT_EQ(sidesOf(decide(chain({{5, 5}, {5, 5}}, 1, 0))), "nn"); }

TEST(Decide, PhasesHoldNoCycle) {
  // 0 -> 1 -> 3 and 0 -> 3 with 1 on the host: 0 and 3 must not share a phase.
  Problem problem = chain({{50, 900}, {kCannot, 30}, {50, 900}, {50, 900}}, 1, 20);
  problem.values[1].consumers = {3}, problem.values[0].consumers = {1, 2, 3}, problem.values[2].consumers = {3};
  Decision result = decide(problem);
  EXPECT_EQ(sidesOf(result), "nhnn");
  EXPECT_EQ(result.phase, (std::vector<uint32_t>{0, 1, 0, 2})); // 2 depends on nothing later than phase 0
}

TEST(Decide, FewPhasesWhereManyOpsCannotRun) {
  // Two branches each need the host in the middle; one host phase serves both.
  Problem problem;
  problem.handOver = {20 * kMicro, 0};
  for (int branch = 0; branch < 2; ++branch) {
    for (double npu : {50.0, kCannot, 50.0}) {
      problem.ops.push_back({{npu == kCannot ? kCannot : npu * kMicro, 900 * kMicro}});
    }
  }
  for (uint32_t producer : {0u, 1u, 3u, 4u}) {
    problem.values.push_back({producer, {producer + 1}, {kMicro, 0}});
  }
  Decision result = decide(problem);
  EXPECT_EQ(sidesOf(result), "nhnnhn");
  EXPECT_EQ(result.phases.size(), 3u);
}

TEST(Decide, NearTheBestOfAllChoices) {
  double worst = 1;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::pair<double, double>> times;
    for (unsigned i = 0; i < 10; ++i) {
      times.push_back({random() % 4 ? double(random() % 60) : kCannot, double(random() % 200)});
    }
    Problem problem = chain(times, double(random() % 10), double(random() % 40));
    for (uint32_t i = 0; i + 2 < times.size(); ++i) {
      if (random() % 3 == 0) {
        problem.values[i].consumers.push_back(i + 2 + random() % (uint32_t(times.size()) - i - 2));
      }
    }
    double best = kCannot;
    for (uint32_t mask = 0; mask < 1u << times.size(); ++mask) {
      std::vector<uint32_t> target;
      for (size_t i = 0; i < times.size(); ++i) {
        target.push_back(mask >> i & 1);
      }
      best = std::min(best, arrange(problem, target).seconds);
    }
    Decision result = decide(problem);
    EXPECT_GE(result.seconds, best * (1 - 1e-9));
    worst = std::max(worst, result.seconds / best);
    for (const Problem::Value &value : problem.values) {
      for (uint32_t consumer : value.consumers) {
        uint32_t from = result.phase[value.producer], to = result.phase[consumer];
        EXPECT_TRUE(result.target[consumer] == result.target[value.producer] ? from <= to : from < to) << seed;
      }
    }
  }
  EXPECT_LT(worst, 1.2);
}

TEST(Decide, OneTargetRunsAllInOnePhase) {
  Problem problem;
  problem.handOver = {0};
  problem.ops = {{{kMicro}}, {{2 * kMicro}}};
  problem.values = {{0, {1}, {0}}};
  Decision result = decide(problem);
  EXPECT_EQ(result.target, (std::vector<uint32_t>{0, 0}));
  EXPECT_EQ(result.phases, (std::vector<uint32_t>{0}));
  EXPECT_NEAR(result.seconds / kMicro, 3, 1e-9);
}

TEST(Decide, WhatTheFirstCannotRunGoesToTheNext) {
  Problem problem;
  problem.handOver = {10 * kMicro, 10 * kMicro, 0};
  problem.ops = {{{50 * kMicro, 60 * kMicro, 900 * kMicro}},
                 {{kCannot, 60 * kMicro, 900 * kMicro}},
                 {{kCannot, kCannot, 30 * kMicro}}};
  problem.values = {{0, {1}, {kMicro, kMicro, 0}}, {1, {2}, {kMicro, kMicro, 0}}};
  Decision result = decide(problem);
  EXPECT_EQ(result.target, (std::vector<uint32_t>{1, 1, 2})); // on the first target, op 0 would need another hand-over
  problem.ops[0].seconds[0] = 5 * kMicro;
  result = decide(problem);
  EXPECT_EQ(result.target, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(result.phases, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_NEAR(result.seconds / kMicro, 5 + 60 + 30 + 2 + 1 + 20 + 10, 1e-6);
}

TEST(Decide, PhasesOfThreeTargetsHoldNoCycle) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    Problem problem;
    for (int i = 0; i < 3; ++i) {
      problem.handOver.push_back(double(random() % 30) * kMicro);
    }
    for (uint32_t i = 0; i < 12; ++i) {
      auto time = [&](bool may) { return may && random() % 4 == 0 ? kCannot : double(random() % 100) * kMicro; };
      problem.ops.push_back({{time(true), time(true), time(false)}});
      Problem::Value value{i, {}, {}};
      for (int target = 0; target < 3; ++target) {
        value.transfer.push_back(double(random() % 5) * kMicro);
      }
      for (uint32_t reader = i + 1; reader < 12; ++reader) {
        if (random() % 4 == 0) {
          value.consumers.push_back(reader);
        }
      }
      problem.values.push_back(std::move(value));
    }
    Decision result = decide(problem);
    EXPECT_LT(result.seconds, kCannot) << seed;
    EXPECT_LE(result.seconds, arrange(problem, std::vector<uint32_t>(12, 2)).seconds) << seed;
    for (uint32_t op = 0; op < 12; ++op) {
      EXPECT_EQ(result.phases[result.phase[op]], result.target[op]) << seed;
    }
    for (const Problem::Value &value : problem.values) {
      for (uint32_t consumer : value.consumers) {
        uint32_t from = result.phase[value.producer], to = result.phase[consumer];
        EXPECT_TRUE(result.target[consumer] == result.target[value.producer] ? from <= to : from < to) << seed;
      }
    }
  }
}
