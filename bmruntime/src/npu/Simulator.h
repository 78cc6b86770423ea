// SPDX-License-Identifier: Apache-2.0
//===- Simulator.h - The NPU in software ------------------------------------===//
#ifndef BMRT_NPU_SIMULATOR_H
#define BMRT_NPU_SIMULATOR_H

#include "Execute.h"
#include "bmodel/npu/check.h"
#include "bmodel/npu/latency.h"

namespace bmrt::npu {

/// One stream on one chip. What it computes and how long that takes are apart: times depend on no data.
class Simulator {
public:
  explicit Simulator(const Chip &chip) : chip(chip), machine{this->chip, Memories(this->chip)} {}
  Simulator(const Simulator &) = delete;
  Simulator &operator=(const Simulator &) = delete;

  /// Takes over a stream after checking it (checkOperands, checkPrograms of |constants|). Both
  /// must stay where they are. False, and the status says why.
  bool open(const bmodel::npu::Descriptor *commands, size_t count, const bmodel::npu::RegionSizes &sizes,
            const unsigned char *constants, bmodel::Status &status);

  /// Runs all commands on |buffers| of the sizes that open was given, in the order of the stream or in another legal
  /// one (bmodel::npu::legalOrder). Local memory keeps what an earlier run left.
  bool run(const Buffers &buffers, bmodel::Status &status, const size_t *order = nullptr);

  /// What each command costs, and when it runs.
  const std::vector<bmodel::npu::Cost> &costs() const { return commandCosts; }
  std::vector<bmodel::npu::Span> times() const {
    return bmodel::npu::schedule(commands, commandCosts.data(), count, chip);
  }

private:
  const Chip chip;
  Machine machine;
  const bmodel::npu::Descriptor *commands = nullptr;
  size_t count = 0;
  std::vector<bmodel::npu::Cost> commandCosts;
};

} // namespace bmrt::npu

#endif // BMRT_NPU_SIMULATOR_H
