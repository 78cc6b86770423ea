// SPDX-License-Identifier: Apache-2.0
//===- Lines.h - Rows of tensors as the matrix unit sees them ---------------===//
#ifndef BMRT_NPU_LINES_H
#define BMRT_NPU_LINES_H

#include "Memories.h"

namespace bmrt::npu {

/// Where consecutive values are taken: at first, first + step, ... of a line whose elements are `spread` apart. Before,
/// behind and between the elements is the outside.
struct Places {
  int64_t first = 0;
  uint32_t step = 1, spread = 1;
};

/// out[t] = what the line has at the t-th place; a line without data has the outside everywhere. Each for the types it
/// holds exactly: int16 for 8 and 16 bits, int32 for these, float for 8 bits and all floats.
void see(int16_t *out, const Line &line, const Places &places, uint32_t count, int16_t outside);
void see(int32_t *out, const Line &line, const Places &places, uint32_t count, int32_t outside);
void see(float *out, const Line &line, const Places &places, uint32_t count, float outside);

/// out[2 * t] = even[t], out[2 * t + 1] = odd[t].
void interleave(int16_t *out, const int16_t *even, const int16_t *odd, uint32_t count);

/// The index along one axis where the window of an output position meets x, or -1: outside.
inline int32_t sourceOf(const bmodel::npu::Window &window, int axis, uint32_t output, uint32_t tap, uint32_t size) {
  int64_t place = int64_t(output) * window.step[axis] + int64_t(tap) * window.dilation[axis] - window.padding[axis];
  if (place < 0 || place % window.spread[axis]) {
    return -1;
  }
  place /= window.spread[axis];
  return place < int64_t(size) ? int32_t(place) : -1;
}

} // namespace bmrt::npu

#endif // BMRT_NPU_LINES_H
