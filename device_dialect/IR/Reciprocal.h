//===- Reciprocal.h - Constants that two products divide by -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_IR_RECIPROCAL_H
#define TESSERA_DEVICE_DIALECT_IR_RECIPROCAL_H

#include <optional>

namespace tessera::device {

/// high + low is 1 / divisor to 48 bits, and fma(x, high, x * low) is the rounded x / divisor for every x whose
/// quotient is neither subnormal nor beyond the finite numbers; of infinity it is that of the division: both have one
/// sign.
struct ReciprocalPair {
  float high, low;
};

/// The pair, if it holds that for |divisor|. It does for nearly all.
std::optional<ReciprocalPair> exactReciprocal(float divisor);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_IR_RECIPROCAL_H
