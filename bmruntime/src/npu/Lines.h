// SPDX-License-Identifier: Apache-2.0
//===- Lines.h - Rows of input values for the matrix unit -------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_NPU_LINES_H
#define TESSERA_BMRUNTIME_SRC_NPU_LINES_H

#include "Memories.h"

namespace bmrt::npu {

/// The positions first, first + step, ... of a line whose elements are at multiples of `spread`. Positions before,
/// after and between the elements are outside and have a padding value.
struct Places {
  int64_t first = 0;
  uint32_t step = 1, spread = 1;
};

/// Sets out[t] to the value at the t-th position; a line without data is outside everywhere. Each overload supports the
/// types that it represents exactly: int16 for 8 and 16 bits, int32 for these as well, float for 8 bits and all floats.
void see(int16_t *out, const Line &line, const Places &places, uint32_t count, int16_t outside);
void see(int32_t *out, const Line &line, const Places &places, uint32_t count, int32_t outside);
void see(float *out, const Line &line, const Places &places, uint32_t count, float outside);

/// Sets out[2 * t] = even[t] and out[2 * t + 1] = odd[t].
void interleave(int16_t *out, const int16_t *even, const int16_t *odd, uint32_t count);

/// Returns the index along one axis of x that a tap reads for an output position, or -1 if it is outside.
inline int32_t sourceOf(const bmodel::npu::Window &window, int axis, uint32_t output, uint32_t tap, uint32_t size) {
  int64_t place = int64_t(output) * window.step[axis] + int64_t(tap) * window.dilation[axis] - window.padding[axis];
  if (place < 0 || place % window.spread[axis]) {
    return -1;
  }
  place /= window.spread[axis];
  return place < int64_t(size) ? int32_t(place) : -1;
}

} // namespace bmrt::npu

#endif // TESSERA_BMRUNTIME_SRC_NPU_LINES_H
