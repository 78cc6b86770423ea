//===- Decide.h - Choice of a target for each op ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Works on costs alone, without MLIR: the time of each op on every target, and the cost of transferring values.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_PARTITION_DECIDE_H
#define TESSERA_CODEGEN_PARTITION_DECIDE_H

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tessera::partition {

/// Time of an op on a target that cannot run it.
inline constexpr double kCannot = std::numeric_limits<double>::infinity();

/// The costs of all ops and transfers, in seconds. Ops are in a valid execution order. Targets are in the order of
/// preference; the last one runs every op.
struct Problem {
  struct Op {
    std::vector<double> seconds; ///< by target; may be kCannot, except for the last target
  };
  struct Value {
    uint32_t producer = 0;
    std::vector<uint32_t> consumers;
    std::vector<double> transfer; ///< by target: time this target spends on sending the value to, or receiving it from,
                                  ///< another
  };
  std::vector<Op> ops;
  std::vector<Value> values;    ///< results of ops; inputs and constants lie in memory that all targets read
  std::vector<double> handOver; ///< by target: time for starting after another target, or another one after it
  size_t targets() const { return handOver.size(); }
};

/// Assignment of ops to phases, which run one after another, each on one target. An op reads only results of the same
/// and earlier phases, so there is no cycle between phases.
struct Decision {
  std::vector<uint32_t> target; ///< by op
  std::vector<uint32_t> phase;  ///< by op, numbered from 0 without gaps
  std::vector<uint32_t> phases; ///< target of each phase
  double seconds = 0;           ///< total time of ops, transfers and hand-overs
};

/// Arranges a given choice of targets in as few phases as it finds, and computes the cost.
Decision arrange(const Problem &problem, std::vector<uint32_t> target);

/// Returns the cheapest choice that it finds. For each target but the last, in turn, a minimum cut separates it from
/// the choice so far, with a hand-over for each transfer; for two targets that is the optimal choice under these
/// prices. Then whole phases change their target as long as that lowers the cost, in which each change of target now
/// counts as one hand-over. Equal costs go to the preferred target.
Decision decide(const Problem &problem);

} // namespace tessera::partition

#endif // TESSERA_CODEGEN_PARTITION_DECIDE_H
