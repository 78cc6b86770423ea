//===- Decide.h - Which target runs which op --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Ops alone, without MLIR: what each costs on every target, and what it costs to take a value from one to another.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_PARTITION_DECIDE_H
#define TESSERA_CODEGEN_PARTITION_DECIDE_H

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tessera::partition {

/// Of an op that a target cannot run.
inline constexpr double kCannot = std::numeric_limits<double>::infinity();

/// Times in seconds. Ops are in an order in which they could run. Targets are in the order of preference; the last one
/// runs every op.
struct Problem {
  struct Op {
    std::vector<double> seconds; ///< by target; kCannot but for the last one
  };
  struct Value {
    uint32_t producer = 0;
    std::vector<uint32_t> consumers;
    std::vector<double> transfer; ///< by target: what it costs this one to leave it for, or to take it from, another
  };
  std::vector<Op> ops;
  std::vector<Value> values;    ///< those that ops make; what is given lies in memory that all targets read
  std::vector<double> handOver; ///< by target: to begin behind another one, or that one behind it
  size_t targets() const { return handOver.size(); }
};

/// Ops run in phases, one after another, each on one target. An op reads only what its own or an earlier phase makes,
/// so phases can run one by one: there is no cycle between them.
struct Decision {
  std::vector<uint32_t> target; ///< by op
  std::vector<uint32_t> phase;  ///< by op; numbers begin with 0, and none is left out
  std::vector<uint32_t> phases; ///< their targets
  double seconds = 0;           ///< all ops, transfers and hand-overs
};

/// The phases of a given choice, as few as are found, and what it costs.
Decision arrange(const Problem &problem, std::vector<uint32_t> target);

/// The cheapest choice that is found. For each target but the last in turn, a minimum cut between it and what is chosen
/// so far, with each transfer priced as a hand-over of its own; of two targets that is the best such choice. Then whole
/// phases change their target as long as that is cheaper with hand-overs counted as they are. Equal costs go to the
/// preferred target.
Decision decide(const Problem &problem);

} // namespace tessera::partition

#endif // TESSERA_CODEGEN_PARTITION_DECIDE_H
