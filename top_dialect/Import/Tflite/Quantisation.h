//===- Quantisation.h - Scales and fixed-point factors of a file *- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_TFLITE_QUANTISATION_H
#define TESSERA_TOP_DIALECT_IMPORT_TFLITE_QUANTISATION_H

#include "top_dialect/Import/Tflite/TfliteFile.h"

#include "llvm/ADT/SmallVector.h"

namespace tessera::top::tflite_import {

/// A factor as mantissa / 2^shift.
struct FixedFactor {
  int32_t mantissa, shift;
};

/// Meaning of the integers of a tensor: r = scale (q - zero).
struct Quantisation {
  llvm::SmallVector<float> scales;  ///< one, or one per entry of dim `axis`
  llvm::SmallVector<int64_t> zeros; ///< as many as scales
  int64_t axis = 0;

  bool isPerChannel() const { return scales.size() > 1; }
  float scale() const { return scales.front(); }
  int64_t zero() const { return zeros.front(); }
  bool operator==(const Quantisation &other) const = default;
};

/// Returns true if |tensor| has 8 or 16-bit integers with a scale, or fields for experiments.
bool isQuantised(const tflite::Tensor &tensor);
/// Returns the quantisation of |tensor|, or an error without the tensor's name if it is absent or invalid.
llvm::Expected<Quantisation> quantisationOf(const tflite::Tensor &tensor);

/// Result of a requantisation: q = sat(round(..) + zero), where sat clamps to [low, high].
struct Range {
  int64_t zero, low, high;
};
/// Returns the smallest and largest value of an integer type of at most 32 bits.
std::pair<int64_t, int64_t> limitsOf(mlir::Type type);
/// Returns the bounds of |activation| in the integers of a result of |type|; nothing for other activations than RELU,
/// RELU6, RELU_N1_TO_1 and NONE.
std::optional<Range> rangeOf(const Quantisation &result, mlir::Type type,
                             tflite::ActivationFunctionType activation = tflite::ActivationFunctionType::NONE);

/// Returns the factor as LiteRT rounds it: halves away from zero, 0 below 2^-32.
FixedFactor toFixedFactor(double factor);
/// Returns |factor| with 15 instead of 31 bits, as LiteRT multiplies sums of 64 bits.
FixedFactor reduced(FixedFactor factor);

} // namespace tessera::top::tflite_import

#endif // TESSERA_TOP_DIALECT_IMPORT_TFLITE_QUANTISATION_H
