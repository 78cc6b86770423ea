//===- NarrowFloats.h - f16 and bf16 to and from f32 ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Fast conversions on bits, for whole weight tensors. They round to nearest even; overflow becomes infinity, and NaN
// becomes a quiet NaN of the same sign. The reference evaluator has a separate, obvious form
// (top_dialect/Reference/SmallFloat.h).
//===----------------------------------------------------------------------===//
#ifndef TESSERA_TOP_DIALECT_IR_NARROWFLOATS_H
#define TESSERA_TOP_DIALECT_IR_NARROWFLOATS_H

#include <bit>
#include <cstdint>

namespace tessera::top {

inline float widenBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

inline uint16_t roundToBf16(float value) {
  uint32_t raw = std::bit_cast<uint32_t>(value);
  if (value != value) {
    return static_cast<uint16_t>((raw >> 16 & 0x8000) | 0x7fc0);
  }
  return static_cast<uint16_t>((raw + 0x7fff + (raw >> 16 & 1)) >> 16);
}

inline float widenF16(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16, magnitude = uint32_t(bits & 0x7fff) << 13;
  // Multiplying by 2^112 moves the exponent and makes subnormals normal.
  uint32_t raw = magnitude >= 0x7c00u << 13 ? magnitude | 0x7f800000
                                            : std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  return std::bit_cast<float>(raw | sign);
}

inline uint16_t roundToF16(float value) {
  uint32_t raw = std::bit_cast<uint32_t>(value), sign = raw >> 16 & 0x8000, magnitude = raw & 0x7fffffff;
  if (magnitude > 0x7f800000) {
    return static_cast<uint16_t>(sign | 0x7e00);
  }
  if (magnitude >= 0x477ff000) { // halfway between the largest f16 and 2^16
    return static_cast<uint16_t>(sign | 0x7c00);
  }
  if (magnitude < 113u << 23) {
    // Subnormal: adding 0.5 lets the float adder round at the right bit.
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000));
  }
  uint32_t rounded = magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | rounded >> 13);
}

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_NARROWFLOATS_H
