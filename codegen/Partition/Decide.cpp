//===- Decide.cpp - Choice of a target for each op ------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Partition/Decide.h"

#include "codegen/Partition/MinCut.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace tessera::partition {
namespace {

using Targets = std::vector<uint32_t>;
using Reads = std::vector<std::vector<uint32_t>>;

/// Converts seconds to whole picoseconds. Finite costs are limited to an hour, far below kNever.
MinCut::Capacity capacityOf(double seconds) {
  return seconds == kCannot ? MinCut::kNever : MinCut::Capacity(std::llround(std::min(seconds, 3600.0) * 1e12));
}

/// Returns the cost of transferring |value| alone from one target to another.
double crossing(const Problem &problem, const Problem::Value &value, uint32_t from, uint32_t to) {
  return value.transfer[from] + value.transfer[to] + problem.handOver[from] + problem.handOver[to];
}

/// Moves ops to |wanted| or leaves them where they are, as a minimum cut decides. A value costs one transfer, however
/// many ops on the other side read it. A transfer between ops that already run on different targets is priced as one
/// between |wanted| and the producer's target.
Targets expand(const Problem &problem, const Targets &from, uint32_t wanted) {
  MinCut graph;
  std::vector<uint32_t> nodes;
  for (size_t op = 0; op < problem.ops.size(); ++op) {
    nodes.push_back(graph.addNode());
    graph.addEdge(graph.source(), nodes.back(), capacityOf(problem.ops[op].seconds[from[op]])); // cut if the op stays
    graph.addEdge(nodes.back(), graph.sink(), capacityOf(problem.ops[op].seconds[wanted]));
  }
  for (const Problem::Value &value : problem.values) {
    if (value.consumers.empty()) {
      continue;
    }
    MinCut::Capacity cost = capacityOf(crossing(problem, value, wanted, from[value.producer]));
    uint32_t out = graph.addNode(), in = graph.addNode(), producer = nodes[value.producer];
    graph.addEdge(producer, out, cost);
    graph.addEdge(in, producer, cost);
    for (uint32_t consumer : value.consumers) {
      graph.addEdge(out, nodes[consumer], MinCut::kNever);
      graph.addEdge(nodes[consumer], in, MinCut::kNever);
    }
  }
  std::vector<bool> moves = graph.solve();
  Targets result = from;
  for (size_t op = 0; op < problem.ops.size(); ++op) {
    result[op] = moves[nodes[op]] ? wanted : from[op];
  }
  return result;
}

Reads readsOf(const Problem &problem) {
  Reads reads(problem.ops.size());
  for (uint32_t value = 0; value < problem.values.size(); ++value) {
    for (uint32_t consumer : problem.values[value].consumers) {
      reads[consumer].push_back(value);
    }
  }
  return reads;
}

/// Assigns a phase to each op, with the targets taking turns from |first| on; each op runs as early as its operands
/// allow. Turns without ops are not numbered.
Decision inTurns(const Problem &problem, const Reads &reads, const Targets &target, uint32_t first) {
  auto count = uint32_t(problem.targets());
  auto turnOf = [&](uint32_t op, uint32_t earliest) { // the first turn of the op's target, from |earliest| on
    uint32_t distance = (target[op] + count - first + count - earliest % count) % count;
    return earliest + distance;
  };
  Decision result;
  result.phase.resize(problem.ops.size());
  for (uint32_t op = 0; op < problem.ops.size(); ++op) {
    uint32_t earliest = 0;
    for (uint32_t value : reads[op]) {
      uint32_t producer = problem.values[value].producer;
      earliest = std::max(earliest, result.phase[producer]);
    }
    result.phase[op] = turnOf(op, earliest);
  }
  uint32_t turns = result.phase.empty() ? 0 : *std::max_element(result.phase.begin(), result.phase.end()) + 1;
  std::vector<bool> isUsed(turns);
  for (uint32_t turn : result.phase) {
    isUsed[turn] = true;
  }
  std::vector<uint32_t> numbers(turns);
  for (uint32_t turn = 0; turn < turns; ++turn) {
    uint32_t of = (first + turn) % count;
    if (isUsed[turn] && (result.phases.empty() || result.phases.back() != of)) {
      result.phases.push_back(of);
    }
    numbers[turn] = result.phases.empty() ? 0 : uint32_t(result.phases.size() - 1);
  }
  for (uint32_t &phase : result.phase) {
    phase = numbers[phase];
  }
  return result;
}

double secondsOf(const Problem &problem, const Decision &decision) {
  double seconds = 0;
  for (size_t phase = 1; phase < decision.phases.size(); ++phase) {
    seconds += problem.handOver[decision.phases[phase - 1]] + problem.handOver[decision.phases[phase]];
  }
  for (size_t op = 0; op < problem.ops.size(); ++op) {
    seconds += problem.ops[op].seconds[decision.target[op]];
  }
  for (const Problem::Value &value : problem.values) {
    Targets readers;
    for (uint32_t consumer : value.consumers) {
      uint32_t reader = decision.target[consumer];
      if (reader != decision.target[value.producer] &&
          std::find(readers.begin(), readers.end(), reader) == readers.end()) {
        readers.push_back(reader);
        seconds += value.transfer[reader];
      }
    }
    seconds += readers.empty() ? 0 : value.transfer[decision.target[value.producer]];
  }
  return seconds;
}

/// Returns the targets after moving those ops of a phase to target |to| that can run on it; nothing if no op moves.
std::optional<Targets> moved(const Problem &problem, const Decision &from, uint32_t phase, uint32_t to) {
  Targets target = from.target;
  bool changed = false;
  for (size_t op = 0; op < problem.ops.size(); ++op) {
    if (from.phase[op] == phase && target[op] != to && problem.ops[op].seconds[to] != kCannot) {
      target[op] = to, changed = true;
    }
  }
  return changed ? std::optional(std::move(target)) : std::nullopt;
}

/// Returns the best decision that moves one phase to another target, or nothing if no move is cheaper.
std::optional<Decision> bestMove(const Problem &problem, const Decision &from) {
  std::optional<Decision> better;
  for (uint32_t phase = 0; phase < from.phases.size(); ++phase) {
    for (uint32_t to = 0; to < problem.targets(); ++to) {
      std::optional<Targets> target = to == from.phases[phase] ? std::nullopt : moved(problem, from, phase, to);
      if (!target) {
        continue;
      }
      Decision trial = arrange(problem, std::move(*target));
      if (trial.seconds < (better ? better->seconds : from.seconds)) {
        better = std::move(trial);
      }
    }
  }
  return better;
}

} // namespace

Decision arrange(const Problem &problem, Targets target) {
  Reads reads = readsOf(problem);
  Decision best;
  for (uint32_t first = 0; first < problem.targets(); ++first) {
    Decision trial = inTurns(problem, reads, target, first);
    if (first == 0 || trial.phases.size() < best.phases.size()) {
      best = std::move(trial);
    }
  }
  best.target = std::move(target);
  best.seconds = secondsOf(problem, best);
  return best;
}

Decision decide(const Problem &problem) {
  auto last = uint32_t(problem.targets() - 1);
  Targets target(problem.ops.size(), last);
  Decision best = arrange(problem, target); // all ops on the last target
  for (uint32_t wanted = last; wanted-- > 0;) {
    target = expand(problem, target, wanted);
  }
  if (Decision cut = arrange(problem, target); cut.seconds <= best.seconds) {
    best = std::move(cut);
  }
  constexpr size_t kMostRounds = 64, kMostVisits = 50'000'000; // visited ops: more would be noticeably slow
  size_t visits = 0;
  for (size_t round = 0; round < kMostRounds && best.phases.size() > 1 && visits < kMostVisits; ++round) {
    visits += best.phases.size() * problem.ops.size() * last;
    std::optional<Decision> better = bestMove(problem, best);
    if (!better) {
      break;
    }
    best = std::move(*better);
  }
  return best;
}

} // namespace tessera::partition
