//===- Requantise.h - Matching requantisations ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_IR_REQUANTISE_H
#define TESSERA_DEVICE_DIALECT_IR_REQUANTISE_H

#include "bmodel/numerics.h"
#include "mlir/IR/Value.h"
#include <optional>

namespace tessera::device {

/// The end of a region that computes 8- or 16-bit integers: clamp(roundeven(value) + zero, low, high) on f32, then
/// conversion to i32 and to |type|. Bounds and zero are integers, so clamping before rounding and adding the zero point
/// after the conversion give the same bits.
struct Requantise {
  mlir::Value value; ///< in the region
  mlir::Type type;   ///< i8 or i16
  int64_t zero = 0, low = 0, high = 0;

  int64_t lowest() const { return high > 127 ? 0 : -128; }
  /// Returns true if [low, high] lies within the values of i8 or of ui8.
  bool fitsBytes() const { return type.isInteger(8) && low >= lowest() && high <= lowest() + 255; }
};

/// Matches the requantisation that computes |result|, a value of a scalar region; returns nothing for other values.
std::optional<Requantise> matchRequantise(mlir::Value result);

/// A requantisation in integers: numerics::requantiseFixed() or requantiseTflite() of an i32 sum.
struct IntegerRequantise {
  mlir::Value sum;             ///< in the region
  mlir::Value mantissa, shift; ///< i32 in the region, or null: |factor|
  bmodel::numerics::FixedFactor factor = {};
  bmodel::numerics::Requantisation mode = bmodel::numerics::Requantisation::Fixed;
  int64_t zero = 0, low = 0, high = 0;
};

std::optional<IntegerRequantise> matchIntegerRequantise(mlir::Value result);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_IR_REQUANTISE_H
