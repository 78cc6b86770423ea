//===- MinCut_test.cpp - Cuts against exhaustive search -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Partition/MinCut.h"

#include <gtest/gtest.h>
#include <random>

using tessera::partition::MinCut;

namespace {

struct Graph {
  uint32_t nodes;
  std::vector<std::array<int64_t, 3>> edges; ///< from, to, capacity
};

int64_t costOf(const Graph &graph, const std::vector<bool> &stays) {
  int64_t cost = 0;
  for (const auto &[from, to, capacity] : graph.edges) {
    cost += stays[size_t(from)] && !stays[size_t(to)] ? capacity : 0;
  }
  return cost;
}

Graph someGraph(unsigned seed) {
  std::mt19937 random(seed);
  Graph graph{.nodes = 3 + uint32_t(random() % 8), .edges = {}};
  for (unsigned i = 0; i < 3 * graph.nodes; ++i) {
    int64_t from = random() % graph.nodes, to = random() % graph.nodes;
    if (from != to && to != 0 && from != 1) {
      graph.edges.push_back({from, to, random() % 9 == 0 ? 1 << 20 : int64_t(random() % 10)});
    }
  }
  return graph;
}

} // namespace

TEST(MinCut, NoCutCostsLess) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Graph graph = someGraph(seed);
    MinCut cut;
    for (uint32_t i = 2; i < graph.nodes; ++i) {
      cut.addNode();
    }
    for (const auto &[from, to, capacity] : graph.edges) {
      cut.addEdge(uint32_t(from), uint32_t(to), capacity);
    }
    std::vector<bool> stays = cut.solve();
    ASSERT_TRUE(stays[0] && !stays[1]);
    EXPECT_EQ(costOf(graph, stays), cut.cost()) << seed;
    int64_t best = INT64_MAX;
    size_t most = 0;
    for (uint32_t mask = 0; mask < 1u << (graph.nodes - 2); ++mask) {
      std::vector<bool> other = {true, false};
      for (uint32_t i = 2; i < graph.nodes; ++i) {
        other.push_back(mask >> (i - 2) & 1);
      }
      int64_t cost = costOf(graph, other);
      size_t kept = size_t(std::count(other.begin(), other.end(), true));
      most = cost < best ? kept : cost == best ? std::max(most, kept) : most;
      best = std::min(best, cost);
    }
    EXPECT_EQ(cut.cost(), best) << seed;
    EXPECT_EQ(size_t(std::count(stays.begin(), stays.end(), true)), most)
        << seed << ": the source's side is not the largest";
  }
}

TEST(MinCut, LongChainsAreNoDepthOfCalls) {
  MinCut cut;
  uint32_t before = cut.source();
  for (int i = 0; i < 200'000; ++i) {
    uint32_t node = cut.addNode();
    cut.addEdge(before, node, i == 777 ? 3 : 5);
    before = node;
  }
  cut.addEdge(before, cut.sink(), 7);
  std::vector<bool> stays = cut.solve();
  EXPECT_EQ(cut.cost(), 3);
  EXPECT_TRUE(stays[2 + 776]);
  EXPECT_FALSE(stays[2 + 777]);
}
