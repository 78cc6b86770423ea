//===- Decide.h - Which ops run on the NPU and which on the host -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Ops alone, without MLIR: what each costs on either side, and what it costs to take a value across.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_PARTITION_DECIDE_H
#define TESSERA_CODEGEN_PARTITION_DECIDE_H

#include <cstdint>
#include <limits>
#include <vector>

namespace tessera::partition {

/// Of an op that a side cannot run.
inline constexpr double kCannot = std::numeric_limits<double>::infinity();

/// Times in seconds. Ops are in an order in which they could run.
struct Problem {
  struct Op {
    double npu = 0; ///< may be kCannot
    double host = 0;
  };
  struct Value {
    uint32_t producer = 0;
    std::vector<uint32_t> consumers;
    double transfer = 0; ///< to be read on the side that does not make it, by however many
  };
  std::vector<Op> ops;
  std::vector<Value> values; ///< those that ops make; what is given lies in memory that both sides read
  double handOver = 0;       ///< from one side to the other, each time
};

/// Ops run in phases, one after another, by turns on the NPU and on the host. An op reads only what its own or an
/// earlier phase makes, so phases can run one by one: there is no cycle between them.
struct Decision {
  std::vector<bool> onHost;    ///< by op
  std::vector<uint32_t> phase; ///< by op; numbers begin with 0, and none is left out
  uint32_t phases = 0;
  double seconds = 0; ///< all ops, transfers and hand-overs
};

/// The phases of a given choice, as few as there can be, and what it costs.
Decision arrange(const Problem &problem, std::vector<bool> onHost);

/// The cheapest choice: a minimum cut with each transfer priced as a hand-over of its own, then whole phases that
/// change sides as long as that is cheaper with hand-overs counted as they are. Equal costs go to the NPU.
Decision decide(const Problem &problem);

} // namespace tessera::partition

#endif // TESSERA_CODEGEN_PARTITION_DECIDE_H
