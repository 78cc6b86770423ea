//===- Reciprocal.cpp - Exact division by two multiplications -------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/Reciprocal.h"

#include "llvm/ADT/bit.h"

#include <cmath>
#include <cstdint>

namespace tessera::device {

/// Returns the inverse of |x| modulo |modulus|; they must be coprime.
static int64_t inverse(int64_t x, int64_t modulus) {
  int64_t t = 0, next = 1, r = modulus, nextR = x % modulus;
  while (nextR) {
    int64_t quotient = r / nextR;
    t -= quotient * next, std::swap(t, next);
    r -= quotient * nextR, std::swap(r, nextR);
  }
  return t < 0 ? t + modulus : t;
}

/// Returns true if the pair rounds X / C correctly for all 24-bit X whose quotient is nearly halfway between two
/// floats.
///
/// Scale so that a float's last bit is 1; the quotient then lies in [2^23, 2^24). The value before the final rounding
/// is wrong by less than 2^-23: 2^-48 of the quotient because high + low is not exactly 1 / C, and as much for the
/// rounding of x * low, which is less than 2. It therefore rounds like the quotient itself unless the quotient is that
/// close to a half, which means |X 2^(k+1) - M C| < 2 C 2^-23 <= 4 for an odd M and k = 23 or 24. The quotient is never
/// exactly a half: M C = X 2^(k+1) has no solution. The function tries all X for each of these differences.
static bool roundsAll(float divisor, ReciprocalPair pair) {
  constexpr int64_t kLeast = int64_t(1) << 23, kNear = 5, kMostTried = 1 << 10;
  int exponent;
  int64_t c = int64_t(std::ldexp(std::frexp(divisor, &exponent), 24));
  int64_t twos = llvm::countr_zero(uint64_t(c)), modulus = c >> twos;
  if (kLeast / modulus > kMostTried) {
    return false; // C has few bits, so there are too many candidates
  }
  for (int64_t k : {24, 25}) {
    int64_t back = inverse((int64_t(1) << (k - twos)) % modulus, modulus);
    for (int64_t near = -kNear; near <= kNear; ++near) {
      if (near == 0 || near % (int64_t(1) << twos)) {
        continue;
      }
      int64_t residue = ((near / (int64_t(1) << twos)) % modulus + modulus) % modulus;
      int64_t x = residue * back % modulus;
      for (x += (kLeast - x + modulus - 1) / modulus * modulus; x < 2 * kLeast; x += modulus) {
        float value = float(x);
        if (std::fma(value, pair.high, value * pair.low) != value / divisor) {
          return false;
        }
      }
    }
  }
  return true;
}

std::optional<ReciprocalPair> exactReciprocal(float divisor) {
  // Neither the factors nor their products with 24-bit numbers may leave the range of normal numbers.
  if (!(std::fabs(divisor) > 0x1p-60f && std::fabs(divisor) < 0x1p60f)) {
    return std::nullopt;
  }
  ReciprocalPair pair;
  pair.high = 1.0f / divisor;
  // fma computes the remainder of the division exactly; its quotient is then rounded once.
  pair.low = std::fma(-pair.high, divisor, 1.0f) / divisor;
  if (pair.low != 0 && std::signbit(pair.low) != std::signbit(pair.high)) {
    pair.high = std::nextafter(pair.high, 0.0f); // with equal signs, infinity times both stays infinite
    pair.low = std::fma(-pair.high, divisor, 1.0f) / divisor;
  }
  int exponent;
  bool powerOfTwo = std::fabs(std::frexp(divisor, &exponent)) == 0.5f;
  float size = std::fabs(divisor);
  ReciprocalPair sizes{std::fabs(pair.high), divisor < 0 ? -pair.low : pair.low};
  return powerOfTwo || roundsAll(size, sizes) ? std::optional(pair) : std::nullopt;
}

} // namespace tessera::device
