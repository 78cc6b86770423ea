//===- SmallFloat.h - f16 and bf16 to and from double ---===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_REFERENCE_SMALLFLOAT_H
#define TESSERA_TOP_DIALECT_REFERENCE_SMALLFLOAT_H

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tessera::top::reference {

/// An IEEE-like 16-bit float with 1 sign bit, `kExponentBits` exponent bits and 15 - kExponentBits fraction bits. The
/// conversion from double rounds once, to nearest even.
template <int kExponentBits>
struct SmallFloat {
  static constexpr int kFractionBits = 15 - kExponentBits;
  static constexpr int kMaxExponent = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kMinExponent = 1 - kMaxExponent;
  static constexpr uint16_t kInfinity = ((1 << kExponentBits) - 1) << kFractionBits;

  uint16_t bits;

  SmallFloat() = default;
  explicit SmallFloat(double value) {
    uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    double magnitude = std::fabs(value);
    if (std::isnan(value)) {
      bits = sign | kInfinity | (1 << (kFractionBits - 1));
    } else if (std::isinf(value)) {
      bits = sign | kInfinity;
    } else {
      bits = sign | encode(magnitude);
    }
  }

  explicit operator double() const {
    int exponent = (bits & 0x7fff) >> kFractionBits;
    int fraction = bits & ((1 << kFractionBits) - 1);
    double magnitude;
    if (exponent == (1 << kExponentBits) - 1) {
      magnitude = fraction ? std::nan("") : HUGE_VAL;
    } else if (exponent == 0) {
      magnitude = std::ldexp(fraction, kMinExponent - kFractionBits);
    } else {
      magnitude = std::ldexp(fraction + (1 << kFractionBits), exponent - kMaxExponent - kFractionBits);
    }
    return bits & 0x8000 ? -magnitude : magnitude;
  }

private:
  /// Rounds to a multiple of the unit in the last place. A carry increments the exponent automatically.
  static uint16_t encode(double magnitude) {
    int exponent = magnitude == 0 ? kMinExponent : std::max(std::ilogb(magnitude), kMinExponent);
    if (exponent > kMaxExponent) {
      return kInfinity;
    }
    auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, kFractionBits - exponent)));
    return ((exponent - kMinExponent) << kFractionBits) + units;
  }
};

using Float16 = SmallFloat<5>;
using BFloat16 = SmallFloat<8>;

} // namespace tessera::top::reference

#endif // TESSERA_TOP_DIALECT_REFERENCE_SMALLFLOAT_H
