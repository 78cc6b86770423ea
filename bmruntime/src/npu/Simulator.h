// SPDX-License-Identifier: Apache-2.0
//===- Simulator.h - The NPU in software ------------------------------------===//
#ifndef BMRT_NPU_SIMULATOR_H
#define BMRT_NPU_SIMULATOR_H

#include "Execute.h"
#include "bmrt/backend.h"

namespace bmrt::npu {

/// One chip. What it computes and how long that takes (bmodel/npu/latency.h) are apart: times depend on no data.
class Simulator {
public:
  explicit Simulator(const Chip &chip) : chip(chip), machine{this->chip, Memories(this->chip)} {}
  Simulator(const Simulator &) = delete;
  Simulator &operator=(const Simulator &) = delete;

  /// Takes the local memory; false if there is none.
  [[nodiscard]] bool allocate() { return machine.memories.allocate(); }

  /// Runs a stream that bmodel::npu::checkStream has passed for this chip and |buffers|' sizes, in its own order or in
  /// another legal one (bmodel::npu::legalOrder). Local memory keeps what an earlier run left. |interrupt| ends the run
  /// between commands; it then returns false.
  bool run(const bmodel::npu::Descriptor *commands, size_t count, const Buffers &buffers, bmodel::Status &status,
           const size_t *order = nullptr, const bmrt_interrupt_t *interrupt = nullptr);

private:
  const Chip chip;
  Machine machine;
};

} // namespace bmrt::npu

#endif // BMRT_NPU_SIMULATOR_H
