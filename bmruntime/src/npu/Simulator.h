// SPDX-License-Identifier: Apache-2.0
//===- Simulator.h - Functional simulator of the NPU ------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_NPU_SIMULATOR_H
#define TESSERA_BMRUNTIME_SRC_NPU_SIMULATOR_H

#include "Execute.h"
#include "bmrt/backend.h"

namespace bmrt::npu {

/// The functional simulator of one chip. Timing is separate (bmodel/npu/latency.h), because times do not depend on
/// data.
class Simulator {
public:
  explicit Simulator(const Chip &chip) : chip(chip), machine{this->chip, Memories(this->chip)} {}
  Simulator(const Simulator &) = delete;
  Simulator &operator=(const Simulator &) = delete;

  /// Allocates the local memory; returns false if memory has run out.
  [[nodiscard]] bool allocate() { return machine.memories.allocate(); }

  /// Runs a stream that bmodel::npu::checkStream has accepted for this chip and the sizes of |buffers|, in its own
  /// order or in another legal one (bmodel::npu::legalOrder). Local memory keeps the contents of earlier runs.
  /// |interrupt| ends the run between commands; the function then returns false.
  bool run(const bmodel::npu::Descriptor *commands, size_t count, const Buffers &buffers, bmodel::Status &status,
           const size_t *order = nullptr, const bmrt_interrupt_t *interrupt = nullptr);

private:
  const Chip chip;
  Machine machine;
};

} // namespace bmrt::npu

#endif // TESSERA_BMRUNTIME_SRC_NPU_SIMULATOR_H
