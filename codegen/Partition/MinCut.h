//===- MinCut.h - Minimum cut of a graph ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_PARTITION_MINCUT_H
#define TESSERA_CODEGEN_PARTITION_MINCUT_H

#include <cstdint>
#include <vector>

namespace tessera::partition {

/// A directed graph with capacities, from a source to a sink.
class MinCut {
public:
  using Capacity = int64_t;
  /// Capacity of edges that must not be cut. Sums of finite capacities stay below it.
  static constexpr Capacity kNever = INT64_C(1) << 56;

  MinCut();

  /// Adds a node and returns its number.
  uint32_t addNode();
  void addEdge(uint32_t from, uint32_t to, Capacity capacity);
  uint32_t source() const { return 0; }
  uint32_t sink() const { return 1; }

  /// Finds a set of edges with the least total capacity that separates source and sink, with Dinic's algorithm.
  /// Returns, by node, true if it is on the source's side. Among cuts of equal cost, picks the one with the largest
  /// source side.
  std::vector<bool> solve();
  /// Returns the cost of the cut, after solve().
  Capacity cost() const { return flow; }

private:
  struct Edge {
    uint32_t to;
    Capacity left; ///< residual capacity; edges 2i and 2i + 1 are the reverse of each other
  };

  bool findLevels();
  Capacity push(uint32_t node, Capacity most);

  std::vector<Edge> edges;
  std::vector<std::vector<uint32_t>> leaving; ///< numbers of the outgoing edges, by node
  std::vector<uint32_t> level, next;
  Capacity flow = 0;
};

} // namespace tessera::partition

#endif // TESSERA_CODEGEN_PARTITION_MINCUT_H
