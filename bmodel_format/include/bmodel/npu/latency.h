// SPDX-License-Identifier: Apache-2.0
//===- latency.h - How long commands take on a chip -------------------------===//
//
// The compiler chooses by these functions and the simulator runs by them: one model, so that they cannot disagree.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_NPU_LATENCY_H
#define BMODEL_NPU_LATENCY_H

#include "bmodel/npu/chip.h"
#include "bmodel/npu/isa.h"

#include <vector>

namespace bmodel::npu {

/// Which part of a command takes its time.
enum class Bound : uint8_t { latency, ddr, local, multiply, output, vector, port };
const char *nameOf(Bound bound);

/// Bytes of DDR, as commands ask for them and as whole bursts move them.
struct Traffic {
  uint64_t asked = 0, moved = 0;
};

/// What one command costs by itself.
struct Cost {
  double cycles = 0; ///< from its start to its end, issue included, with no other command at work
  Bound bound{};     ///< the largest part
  uint64_t products = 0;
  Traffic read, written;
  /// Cycles in which the command needs the port of each bank, the lane that needs it most counted.
  std::vector<double> ports;
};

Cost costOf(const Descriptor &command, const Chip &chip);
/// The matrix unit works on x of this type at the rate of int8 divided by this; on products by w so many times.
double divisorOf(Type x, const Chip &chip);
uint32_t passesOf(Type x, Type w);

/// When a command ran, in cycles from the start of the stream.
struct Span {
  double begin = 0, end = 0;
  double stalled = 0; ///< because the other queue's command used the same bank
};

/// The spans of all commands of a verified stream. Where a DMA command and a compute command that run at the same time
/// need the port of one bank for more cycles than there are, the DMA waits.
std::vector<Span> schedule(const Descriptor *commands, const Cost *costs, size_t count, const Chip &chip);

} // namespace bmodel::npu

#endif // BMODEL_NPU_LATENCY_H
