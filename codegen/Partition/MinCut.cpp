//===- MinCut.cpp - Minimum cut of a graph --------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Partition/MinCut.h"

#include <algorithm>

namespace tessera::partition {

MinCut::MinCut() { leaving.resize(2); }

uint32_t MinCut::addNode() {
  leaving.emplace_back();
  return uint32_t(leaving.size() - 1);
}

void MinCut::addEdge(uint32_t from, uint32_t to, Capacity capacity) {
  leaving[from].push_back(uint32_t(edges.size()));
  edges.push_back({to, capacity});
  leaving[to].push_back(uint32_t(edges.size()));
  edges.push_back({from, 0});
}

/// Computes the distances from the source along edges with residual capacity; returns false if they do not reach the
/// sink.
bool MinCut::findLevels() {
  constexpr uint32_t kNone = UINT32_MAX;
  level.assign(leaving.size(), kNone);
  level[source()] = 0;
  std::vector<uint32_t> queue = {source()};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (uint32_t edge : leaving[queue[i]]) {
      if (edges[edge].left > 0 && level[edges[edge].to] == kNone) {
        level[edges[edge].to] = level[queue[i]] + 1;
        queue.push_back(edges[edge].to);
      }
    }
  }
  return level[sink()] != kNone;
}

/// Sends flow along one path on which each edge leads one level further. A path may be as long as the graph is deep, so
/// it is kept in a list instead of recursive calls.
MinCut::Capacity MinCut::push(uint32_t node, Capacity most) {
  std::vector<uint32_t> way;
  uint32_t at = node;
  while (at != sink()) {
    if (next[at] == leaving[at].size()) { // dead end: step back
      if (way.empty()) {
        return 0;
      }
      at = edges[way.back() ^ 1].to;
      way.pop_back();
      ++next[at];
      continue;
    }
    uint32_t edge = leaving[at][next[at]];
    if (edges[edge].left > 0 && level[edges[edge].to] == level[at] + 1) {
      way.push_back(edge);
      at = edges[edge].to;
    } else {
      ++next[at];
    }
  }
  for (uint32_t edge : way) {
    most = std::min(most, edges[edge].left);
  }
  for (uint32_t edge : way) {
    edges[edge].left -= most, edges[edge ^ 1].left += most;
  }
  return most;
}

std::vector<bool> MinCut::solve() {
  while (findLevels()) {
    next.assign(leaving.size(), 0);
    while (Capacity sent = push(source(), kNever)) {
      flow += sent;
    }
  }
  // Nodes from which the sink is reachable are on its side; all others can stay with the source.
  std::vector<bool> stays(leaving.size(), true);
  std::vector<uint32_t> queue = {sink()};
  stays[sink()] = false;
  for (size_t i = 0; i < queue.size(); ++i) {
    for (uint32_t edge : leaving[queue[i]]) {
      uint32_t from = edges[edge].to;
      if (edges[edge ^ 1].left > 0 && stays[from]) {
        stays[from] = false;
        queue.push_back(from);
      }
    }
  }
  return stays;
}

} // namespace tessera::partition
