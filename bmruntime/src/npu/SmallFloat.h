// SPDX-License-Identifier: Apache-2.0
//===- SmallFloat.h - Conversion of all element types to and from float -----===//
#ifndef TESSERA_BMRUNTIME_SRC_NPU_SMALLFLOAT_H
#define TESSERA_BMRUNTIME_SRC_NPU_SMALLFLOAT_H

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace bmrt::npu {

struct Bf16 {
  uint16_t bits;
};
using F16 = _Float16;

template <typename T>
inline float toFloat(T value) {
  if constexpr (std::is_same_v<T, Bf16>) {
    return std::bit_cast<float>(uint32_t(value.bits) << 16);
  } else {
    return float(value);
  }
}

/// Converts from float with rounding to nearest even. For integers, values must be whole numbers and saturate; NaN
/// becomes 0.
template <typename T>
inline T fromFloat(float value) {
  if constexpr (std::is_same_v<T, Bf16>) {
    uint32_t bits = std::bit_cast<uint32_t>(value);
    if (value != value) {
      return {uint16_t(bits >> 16 | 0x40)};
    }
    return {uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
  } else if constexpr (std::is_integral_v<T> && sizeof(T) < 4) {
    // Simple enough for the auto-vectoriser.
    constexpr float low = float(std::numeric_limits<T>::min()), high = float(std::numeric_limits<T>::max());
    float inside = value > low ? value : low;
    inside = inside < high ? inside : high;
    return T(int32_t(value == value ? inside : 0.0f));
  } else if constexpr (std::is_integral_v<T>) {
    // The largest int32 is not representable as float; values of at least 2^31 saturate.
    constexpr float low = float(std::numeric_limits<T>::min()), high = float(std::numeric_limits<T>::max());
    return value >= high  ? std::numeric_limits<T>::max()
           : value >= low ? T(value)
           : value < low  ? std::numeric_limits<T>::min()
                          : T(0);
  } else {
    return T(value);
  }
}

} // namespace bmrt::npu

#endif // TESSERA_BMRUNTIME_SRC_NPU_SMALLFLOAT_H
