// SPDX-License-Identifier: Apache-2.0
//===- Execute.h - What each command does -----------------------------------===//
#ifndef BMRT_NPU_EXECUTE_H
#define BMRT_NPU_EXECUTE_H

#include "Memories.h"

namespace bmrt::npu {

/// What commands work on.
struct Machine {
  const Chip &chip;
  Memories memories;
};

// Each does one command whose tensors have been checked; null, or what went wrong while it ran.
#define NPU_COMMAND(name, opcode, queue, meaning)                                                                      \
  const char *execute(const bmodel::npu::name##_command &command, Machine &machine);
#include "bmodel/npu/isa.inc"

/// The output stage: `count` sums of row (n,c,h) become elements of y from its first column on. Sums are integers in
/// double, exact, or floats.
class OutputStage {
public:
  /// r and p may be absent.
  OutputStage(const bmodel::npu::Output &output, const Machine &machine, const Tensor &y, const Tensor &r,
              const Tensor &p)
      : output(output), twice(machine.chip.requantise == "tflite"), y(machine.memories.rows(y)),
        r(machine.memories.rows(r)), p(machine.memories.rows(p)) {}

  void store(const double *sums, uint32_t n, uint32_t c, uint32_t h, uint32_t count) const;
  void store(const float *sums, uint32_t n, uint32_t c, uint32_t h, uint32_t count) const;

private:
  /// bias: of float sums the bits of an f32. factor: of integral stages the bits of the mantissa.
  struct Channel {
    int32_t bias;
    float factor;
    int32_t shift;
  };
  Channel channel(uint32_t c) const;
  void storeRaw(const double *sums, int32_t bias, unsigned char *to, uint32_t count) const;
  void requantise(const double *sums, float *v, const Channel &channel, uint32_t count) const;
  void finish(float *v, const Channel &channel, uint32_t n, uint32_t c, uint32_t h, uint32_t w, uint32_t count) const;

  const bmodel::npu::Output &output;
  const bool twice; ///< integral stages round as TensorFlow Lite
  Rows y, r, p;
};

} // namespace bmrt::npu

#endif // BMRT_NPU_EXECUTE_H
