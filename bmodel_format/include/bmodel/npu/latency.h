// SPDX-License-Identifier: Apache-2.0
//===- latency.h - How long commands take on a chip -------------------------===//
//
// Compiler and simulator share these functions, so that cost model and simulated time cannot disagree.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_NPU_LATENCY_H
#define BMODEL_NPU_LATENCY_H

#include "bmodel/npu/chip.h"
#include "bmodel/npu/isa.h"

#include <vector>

namespace bmodel::npu {

/// The part of a command that limits its time.
enum class Bound : uint8_t { latency, ddr, local, multiply, output, vector, port };
const char *nameOf(Bound bound);

/// DDR traffic in bytes: as the commands request it, and as whole bursts move it.
struct Traffic {
  uint64_t asked = 0, moved = 0;
};

/// The cost of one command in isolation.
struct Cost {
  double cycles = 0; ///< from its start to its end, issue included, while no other command runs
  Bound bound{};     ///< the part that takes longest
  uint64_t macs = 0;
  Traffic read, written;
  /// Cycles in which the command occupies the port of each bank, in the lane where it occupies that port longest.
  std::vector<double> ports;
};

Cost costOf(const Descriptor &command, const Chip &chip);
/// Returns the factor by which the matrix unit is slower for x of this type than for int8.
double divisorOf(Type x, const Chip &chip);
/// Returns the number of passes that the matrix unit makes to multiply x by w.
uint32_t passesOf(Type x, Type w);

/// The time at which a command ran, in cycles from the start of the stream.
struct Span {
  double begin = 0, end = 0;
  double stalled = 0; ///< cycles lost because a command of the other queue used the same bank
};

/// Computes the spans of all commands of a verified stream. If a concurrent DMA and compute command together need more
/// than the full bandwidth of a bank's port, the DMA command slows down, at most to an eighth of its speed.
std::vector<Span> schedule(const Descriptor *commands, const Cost *costs, size_t count, const Chip &chip);

} // namespace bmodel::npu

#endif // BMODEL_NPU_LATENCY_H
