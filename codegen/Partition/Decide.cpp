//===- Decide.cpp - Which ops run on the NPU and which on the host --------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Partition/Decide.h"

#include "codegen/Partition/MinCut.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace tessera::partition {
namespace {

/// Capacities are whole picoseconds; an hour is far below what may not be cut.
MinCut::Capacity capacityOf(double seconds) {
  return seconds == kCannot ? MinCut::kNever : MinCut::Capacity(std::llround(std::min(seconds, 3600.0) * 1e12));
}

/// Each op with the side that a minimum cut leaves it on. A value that any op of the other side reads costs once.
std::vector<bool> cut(const Problem &problem) {
  MinCut graph;
  std::vector<uint32_t> nodes;
  for (const Problem::Op &op : problem.ops) {
    nodes.push_back(graph.addNode());
    graph.addEdge(graph.source(), nodes.back(), capacityOf(op.host)); // cut: on the host
    graph.addEdge(nodes.back(), graph.sink(), capacityOf(op.npu));
  }
  for (const Problem::Value &value : problem.values) {
    if (value.consumers.empty()) {
      continue;
    }
    MinCut::Capacity cost = capacityOf(value.transfer + problem.handOver);
    uint32_t toHost = graph.addNode(), toNpu = graph.addNode(), producer = nodes[value.producer];
    graph.addEdge(producer, toHost, cost);
    graph.addEdge(toNpu, producer, cost);
    for (uint32_t consumer : value.consumers) {
      graph.addEdge(toHost, nodes[consumer], MinCut::kNever);
      graph.addEdge(nodes[consumer], toNpu, MinCut::kNever);
    }
  }
  std::vector<bool> stays = graph.solve(), onHost;
  for (uint32_t node : nodes) {
    onHost.push_back(!stays[node]);
  }
  return onHost;
}

/// Phases by op where the first one is of the side `hostFirst` says: each op as early as what it reads allows.
std::vector<uint32_t> phasesOf(const Problem &problem, const std::vector<std::vector<uint32_t>> &reads,
                               const std::vector<bool> &onHost, bool hostFirst) {
  std::vector<uint32_t> phase(problem.ops.size());
  for (uint32_t op = 0; op < problem.ops.size(); ++op) {
    uint32_t earliest = onHost[op] == hostFirst ? 0 : 1;
    for (uint32_t value : reads[op]) {
      uint32_t producer = problem.values[value].producer;
      earliest = std::max(earliest, phase[producer] + (onHost[producer] != onHost[op]));
    }
    phase[op] = earliest;
  }
  return phase;
}

std::vector<std::vector<uint32_t>> readsOf(const Problem &problem) {
  std::vector<std::vector<uint32_t>> reads(problem.ops.size());
  for (uint32_t value = 0; value < problem.values.size(); ++value) {
    for (uint32_t consumer : problem.values[value].consumers) {
      reads[consumer].push_back(value);
    }
  }
  return reads;
}

double secondsOf(const Problem &problem, const std::vector<bool> &onHost, uint32_t phases) {
  double seconds = phases > 1 ? problem.handOver * (phases - 1) : 0;
  for (size_t op = 0; op < problem.ops.size(); ++op) {
    seconds += onHost[op] ? problem.ops[op].host : problem.ops[op].npu;
  }
  for (const Problem::Value &value : problem.values) {
    bool crosses = std::any_of(value.consumers.begin(), value.consumers.end(),
                               [&](uint32_t consumer) { return onHost[consumer] != onHost[value.producer]; });
    seconds += crosses ? value.transfer : 0;
  }
  return seconds;
}

/// The ops of a phase on the other side, those that can be there.
std::optional<std::vector<bool>> flipped(const Problem &problem, const Decision &from, uint32_t phase) {
  std::vector<bool> onHost = from.onHost;
  bool changed = false;
  for (size_t op = 0; op < problem.ops.size(); ++op) {
    if (from.phase[op] == phase && (!onHost[op] || problem.ops[op].npu != kCannot)) {
      onHost[op] = !onHost[op], changed = true;
    }
  }
  return changed ? std::optional(std::move(onHost)) : std::nullopt;
}

} // namespace

Decision arrange(const Problem &problem, std::vector<bool> onHost) {
  std::vector<std::vector<uint32_t>> reads = readsOf(problem);
  Decision best;
  for (bool hostFirst : {false, true}) {
    std::vector<uint32_t> phase = phasesOf(problem, reads, onHost, hostFirst);
    // With the wrong side first there is nothing in phase 0.
    uint32_t first = phase.empty() ? 0 : *std::min_element(phase.begin(), phase.end());
    std::for_each(phase.begin(), phase.end(), [&](uint32_t &each) { each -= first; });
    uint32_t phases = phase.empty() ? 0 : *std::max_element(phase.begin(), phase.end()) + 1;
    if (!hostFirst || phases < best.phases) {
      best.phase = std::move(phase), best.phases = phases;
    }
  }
  best.seconds = secondsOf(problem, onHost, best.phases);
  best.onHost = std::move(onHost);
  return best;
}

Decision decide(const Problem &problem) {
  Decision best = arrange(problem, cut(problem));
  Decision allOnHost = arrange(problem, std::vector<bool>(problem.ops.size(), true));
  if (allOnHost.seconds < best.seconds) {
    best = std::move(allOnHost);
  }
  constexpr size_t kMostRounds = 64, kMostVisits = 50'000'000; // of ops: more would be felt
  size_t visits = 0;
  for (size_t round = 0; round < kMostRounds && best.phases > 1 && visits < kMostVisits; ++round) {
    visits += size_t(best.phases) * problem.ops.size();
    std::optional<Decision> better;
    for (uint32_t phase = 0; phase < best.phases; ++phase) {
      std::optional<std::vector<bool>> onHost = flipped(problem, best, phase);
      Decision trial = onHost ? arrange(problem, std::move(*onHost)) : best;
      if (trial.seconds < (better ? better->seconds : best.seconds)) {
        better = std::move(trial);
      }
    }
    if (!better) {
      break;
    }
    best = std::move(*better);
  }
  return best;
}

} // namespace tessera::partition
