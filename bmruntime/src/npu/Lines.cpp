// SPDX-License-Identifier: Apache-2.0
//===- Lines.cpp - Rows of input values for the matrix unit -----------------===//
#include "Lines.h"

#include "EveryWidth.h"
#include "SmallFloat.h"

#include <algorithm>
#include <cstring>

namespace bmrt::npu {
namespace {

template <typename T>
[[gnu::always_inline]] inline T valueAt(const unsigned char *from) {
  T value;
  memcpy(&value, from, sizeof value);
  return value;
}

/// Converts `count` elements that are `step` bytes apart; the common steps of windows are compile-time constants in the
/// loops.
template <typename T, typename Element>
[[gnu::always_inline]] inline void convert(Element *out, const unsigned char *from, int64_t step, uint32_t count) {
  auto loop = [&](int64_t known) __attribute__((always_inline)) {
    for (uint32_t i = 0; i < count; ++i) {
      if constexpr (std::is_same_v<Element, float>) {
        out[i] = toFloat(valueAt<T>(from + int64_t(i) * known));
      } else {
        out[i] = Element(valueAt<T>(from + int64_t(i) * known));
      }
    }
  };
  if (step == int64_t(sizeof(T))) {
    loop(sizeof(T));
  } else if (step == 2 * int64_t(sizeof(T))) {
    loop(2 * sizeof(T));
  } else {
    loop(step);
  }
}

template <typename T, typename Element>
[[gnu::always_inline]] inline void seeAs(Element *out, const Line &line, const Places &places, uint32_t count,
                                         Element outside) {
  if (!line.data) {
    std::fill(out, out + count, outside);
    return;
  }
  if (places.spread != 1) {
    for (uint32_t t = 0; t < count; ++t) {
      int64_t place = places.first + int64_t(t) * places.step, index = place / places.spread;
      bool inside = place >= 0 && place % places.spread == 0 && index < int64_t(line.size);
      out[t] = outside;
      if (inside) {
        convert<T>(out + t, line.data + index * line.step, line.step, 1);
      }
    }
    return;
  }
  int64_t step = places.step, most = count;
  int64_t begin = std::min(most, places.first >= 0 ? 0 : (-places.first + step - 1) / step);
  int64_t behind = int64_t(line.size) - places.first;
  int64_t end = std::clamp(behind > 0 ? (behind + step - 1) / step : 0, begin, most);
  std::fill(out, out + begin, outside);
  convert<T>(out + begin, line.data + (places.first + begin * step) * line.step, step * line.step,
             uint32_t(end - begin));
  std::fill(out + end, out + count, outside);
}

} // namespace

NPU_EVERY_WIDTH void see(int16_t *out, const Line &line, const Places &places, uint32_t count, int16_t outside) {
  return line.type == Type::i8   ? seeAs<int8_t>(out, line, places, count, outside)
         : line.type == Type::u8 ? seeAs<uint8_t>(out, line, places, count, outside)
                                 : seeAs<int16_t>(out, line, places, count, outside);
}

NPU_EVERY_WIDTH void see(int32_t *out, const Line &line, const Places &places, uint32_t count, int32_t outside) {
  return line.type == Type::i8   ? seeAs<int8_t>(out, line, places, count, outside)
         : line.type == Type::u8 ? seeAs<uint8_t>(out, line, places, count, outside)
                                 : seeAs<int16_t>(out, line, places, count, outside);
}

NPU_EVERY_WIDTH void see(float *out, const Line &line, const Places &places, uint32_t count, float outside) {
  return line.type == Type::i8     ? seeAs<int8_t>(out, line, places, count, outside)
         : line.type == Type::u8   ? seeAs<uint8_t>(out, line, places, count, outside)
         : line.type == Type::bf16 ? seeAs<Bf16>(out, line, places, count, outside)
         : line.type == Type::f16  ? seeAs<F16>(out, line, places, count, outside)
                                   : seeAs<float>(out, line, places, count, outside);
}

NPU_EVERY_WIDTH void interleave(int16_t *out, const int16_t *even, const int16_t *odd, uint32_t count) {
  for (uint32_t t = 0; t < count; ++t) {
    out[2 * t] = even[t];
    out[2 * t + 1] = odd[t];
  }
}

} // namespace bmrt::npu
