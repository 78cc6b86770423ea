//===- MinCut.h - The cheapest way to cut a graph in two --------*- C++ -*-===//
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
  /// Of edges that must not be cut. Sums of finite capacities stay below it.
  static constexpr Capacity kNever = INT64_C(1) << 56;

  MinCut();

  /// A new node; its number.
  uint32_t addNode();
  void addEdge(uint32_t from, uint32_t to, Capacity capacity);
  uint32_t source() const { return 0; }
  uint32_t sink() const { return 1; }

  /// Cuts edges of the least total capacity such that no way leads from source to sink; by Dinic's algorithm. By node:
  /// whether it is still reached from the source. Of several cuts of that cost the one with the largest such side.
  std::vector<bool> solve();
  /// Of the cut, once it is found.
  Capacity cost() const { return flow; }

private:
  struct Edge {
    uint32_t to;
    Capacity left; ///< of its capacity; the reverse edge is the next or the one before
  };

  bool findLevels();
  Capacity push(uint32_t node, Capacity most);

  std::vector<Edge> edges;
  std::vector<std::vector<uint32_t>> leaving; ///< edges by node
  std::vector<uint32_t> level, next;
  Capacity flow = 0;
};

} // namespace tessera::partition

#endif // TESSERA_CODEGEN_PARTITION_MINCUT_H
