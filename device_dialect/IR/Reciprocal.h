//===- Reciprocal.h - Exact division by two multiplications -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_IR_RECIPROCAL_H
#define TESSERA_DEVICE_DIALECT_IR_RECIPROCAL_H

#include <optional>

namespace tessera::device {

/// A pair such that high + low is 1 / divisor to 48 bits and fma(x, high, x * low) is the rounded x / divisor for every
/// x whose quotient is neither subnormal nor overflows. An infinite x gives the same infinity as the division, because
/// high and low have the same sign.
struct ReciprocalPair {
  float high, low;
};

/// Returns the pair for |divisor| if it has this property, as for nearly all divisors.
std::optional<ReciprocalPair> exactReciprocal(float divisor);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_IR_RECIPROCAL_H
