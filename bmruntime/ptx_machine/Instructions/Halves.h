//===- Halves.h - 16-bit floats and roundings -----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_INSTRUCTIONS_HALVES_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_INSTRUCTIONS_HALVES_H

#include <cmath>
#include <cstdint>
#include <cstring>

namespace ptx {

template <class To, class From>
inline To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

/// The NaN that NVIDIA GPUs produce.
constexpr uint32_t kNan32 = 0x7fffffff;
constexpr uint16_t kNan16 = 0x7fff;

inline float canonical(float value) { return value == value ? value : bitCast<float>(kNan32); }

// _Float16 converts with one F16C instruction, which obeys the current rounding mode.
inline float fromF16(uint16_t bits) { return float(bitCast<_Float16>(bits)); }
inline uint16_t toF16(float value) { return value == value ? bitCast<uint16_t>(_Float16(value)) : kNan16; }

inline float fromBf16(uint16_t bits) { return bitCast<float>(uint32_t(bits) << 16); }
inline uint16_t toBf16(float value) {
  auto bits = bitCast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return value == value ? uint16_t(rounded) : kNan16;
}

enum class Rounding : uint8_t { Nearest, Down, Up, Zero, NearestAway };

/// Returns |value|, rounded once, as the bits of a float with |kFraction| fraction bits and least normal exponent
/// |kLeast|. NaN becomes all ones except for the sign.
template <unsigned kFraction, int kLeast>
uint64_t narrow(long double value, Rounding rounding) {
  constexpr unsigned kExponentBits = kLeast == -14 ? 5 : kLeast == -126 ? 8 : 11;
  constexpr uint64_t kInfinity = ((uint64_t(1) << kExponentBits) - 1) << kFraction;
  constexpr uint64_t kSign = uint64_t(1) << (kFraction + kExponentBits);
  if (value != value) {
    return kSign - 1;
  }
  bool isNegative = std::signbit(value);
  uint64_t sign = isNegative ? kSign : 0;
  long double magnitude = std::fabs(value);
  if (std::isinf(value)) {
    return sign | kInfinity;
  }
  if (magnitude == 0) {
    return sign;
  }
  int exponent = std::ilogb(magnitude);
  exponent = exponent < kLeast ? kLeast : exponent;
  long double steps = std::ldexp(magnitude, int(kFraction) - exponent), whole = std::floor(steps);
  long double rest = steps - whole;
  auto integer = uint64_t(whole);
  bool isUp = false;
  switch (rounding) {
  case Rounding::Nearest:
    isUp = rest > 0.5L || (rest == 0.5L && (integer & 1));
    break;
  case Rounding::NearestAway:
    isUp = rest >= 0.5L;
    break;
  case Rounding::Down:
    isUp = isNegative && rest > 0;
    break;
  case Rounding::Up:
    isUp = !isNegative && rest > 0;
    break;
  case Rounding::Zero:
    break;
  }
  integer += isUp;
  // A carry into the exponent gives the right result, and subnormals need no special case.
  if (exponent - kLeast > (1 << kExponentBits)) {
    integer = kInfinity;
  } else {
    integer += uint64_t(exponent - kLeast) << kFraction;
  }
  if (integer >= kInfinity) {
    bool isAway = rounding == Rounding::Nearest || rounding == Rounding::NearestAway ||
                  (rounding == Rounding::Up && !isNegative) || (rounding == Rounding::Down && isNegative);
    integer = isAway ? kInfinity : kInfinity - 1;
  }
  return sign | integer;
}

inline uint16_t narrowToF16(long double value, Rounding rounding) { return uint16_t(narrow<10, -14>(value, rounding)); }
inline uint16_t narrowToBf16(long double value, Rounding rounding) {
  return uint16_t(narrow<7, -126>(value, rounding));
}
inline float narrowToF32(long double value, Rounding rounding) {
  return bitCast<float>(uint32_t(narrow<23, -126>(value, rounding)));
}

} // namespace ptx

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_INSTRUCTIONS_HALVES_H
