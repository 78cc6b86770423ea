//===- numerics.h - The arithmetic of quantised results ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// The reference arithmetic that every engine must reproduce, in C++ that CUDA compilers accept as well. The device
// dialect expresses the same computations as arith ops; the tests compare the two. Compile with -ffp-contract=off: no
// function may be contracted or re-associated.
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

/// The way in which the i32 sum of a contraction is converted to a narrow integer.
enum class Requantisation {
  Float,  ///< rne(float(sum) * factor) + zero
  Fixed,  ///< round(sum * mantissa / 2^shift) + zero, halves upwards
  Tflite, ///< as Fixed, but rounded twice (to 31 bits, then to the result), halves away from zero
};

/// Parses the value of --requantize: float, fixed or tflite.
inline std::optional<Requantisation> parseRequantisation(std::string_view name) {
  return name == "float"    ? std::optional(Requantisation::Float)
         : name == "fixed"  ? std::optional(Requantisation::Fixed)
         : name == "tflite" ? std::optional(Requantisation::Tflite)
                            : std::nullopt;
}

/// A positive factor as mantissa / 2^shift. The mantissa is in [2^30, 2^31), or in [0, 2^30) if the factor is below
/// 2^-32. shift is 1 to 62.
struct FixedFactor {
  int32_t mantissa;
  int32_t shift;
};

/// Returns the nearest FixedFactor. |factor| must be positive and finite; factors above 2^30 saturate.
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

/// Matches TensorFlow Lite's MultiplyByQuantizedMultiplier, except that it saturates if the left shift overflows.
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
