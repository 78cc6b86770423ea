//===- numerics.h - The arithmetic of quantised results ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// What every engine computes, in plain C++ that a CUDA compiler takes as well. Device IR says the same in arith ops;
// the tests hold both against each other. No function contracts or re-associates: compile with -ffp-contract=off.
//===----------------------------------------------------------------------===//
#ifndef BMODEL_NUMERICS_H
#define BMODEL_NUMERICS_H

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#if defined(__CUDACC__)
#define BM_NUMERICS __host__ __device__ inline
#else
#define BM_NUMERICS inline
#endif

namespace bmodel::numerics {

/// How the i32 sum of a product becomes an integer of few bits.
enum class Requantisation {
  Float,  ///< rne(float(sum) * factor) + zero
  Fixed,  ///< round(sum * mantissa / 2^shift) + zero, halves upwards
  Tflite, ///< as Fixed, but rounded twice: at 31 bits, then at the rest, halves away from zero
};

/// By the name that --requantize has for it: float, fixed or tflite.
inline std::optional<Requantisation> parseRequantisation(std::string_view name) {
  return name == "float"    ? std::optional(Requantisation::Float)
         : name == "fixed"  ? std::optional(Requantisation::Fixed)
         : name == "tflite" ? std::optional(Requantisation::Tflite)
                            : std::nullopt;
}

/// A positive factor as mantissa / 2^shift, the mantissa in [2^30, 2^31), or in [0, 2^30) where the factor is below
/// 2^-32. shift is 1 to 62.
struct FixedFactor {
  int32_t mantissa;
  int32_t shift;
};

/// The nearest one. |factor|: positive, finite, at most 2^30 (larger ones saturate).
BM_NUMERICS FixedFactor toFixed(double factor) {
  int exponent;
  double fraction = std::frexp(factor, &exponent); // [0.5, 1)
  int64_t mantissa = std::llrint(std::ldexp(fraction, 31));
  if (mantissa == int64_t(1) << 31) {
    mantissa >>= 1, ++exponent;
  }
  int shift = 31 - exponent;
  if (shift > 62) { // a sum of 31 bits cannot reach one half
    return {shift > 62 + 31 ? 0 : int32_t(mantissa >> (shift - 62)), 62};
  }
  return shift < 1 ? FixedFactor{INT32_MAX, 1} : FixedFactor{int32_t(mantissa), shift};
}

BM_NUMERICS int32_t clampTo(int64_t value, int32_t low, int32_t high) {
  return int32_t(value < low ? low : value > high ? high : value);
}

BM_NUMERICS int32_t requantiseFloat(int32_t sum, float factor, int32_t zero, int32_t low, int32_t high) {
  float value = std::nearbyint(float(sum) * factor) + float(zero);
  return int32_t(value < float(low) ? float(low) : value > float(high) ? float(high) : value);
}

BM_NUMERICS int32_t requantiseFixed(int32_t sum, FixedFactor factor, int32_t zero, int32_t low, int32_t high) {
  int64_t product = int64_t(sum) * factor.mantissa;
  return clampTo(((product + (int64_t(1) << (factor.shift - 1))) >> factor.shift) + zero, low, high);
}

/// As TensorFlow Lite's MultiplyByQuantizedMultiplier; where that overflows to the left this saturates.
BM_NUMERICS int32_t requantiseTflite(int32_t sum, FixedFactor factor, int32_t zero, int32_t low, int32_t high) {
  int32_t right = factor.shift - 31, left = right < 0 ? -right : 0;
  right = right < 0 ? 0 : right;
  int64_t shifted = clampTo(int64_t(sum) << left, INT32_MIN, INT32_MAX);
  int64_t rounded = (shifted * factor.mantissa + (int64_t(1) << 30)) >> 31;
  int64_t mask = (int64_t(1) << right) - 1, threshold = (mask >> 1) + (rounded < 0);
  return clampTo((rounded >> right) + ((rounded & mask) > threshold) + zero, low, high);
}

} // namespace bmodel::numerics

#endif // BMODEL_NUMERICS_H
