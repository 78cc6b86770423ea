//===- ResidualWeights.h - Weights as the sum of two i8 constants --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_WEIGHTS_RESIDUALWEIGHTS_H
#define TESSERA_QUANT_TRANSFORMS_WEIGHTS_RESIDUALWEIGHTS_H

#include "mlir/IR/Builders.h"
#include "quant/Transforms/Precision/Decisions.h"

namespace tessera::quant {

/// Checks that the table requests two terms for the weights of a contraction. `ofResult` is the table's entry for the
/// tensor that the contraction computes, or null.
bool hasResidualWeights(const Range *ofResult);

/// Adds the rounding error of the i8 weights of an integer contraction as a second contraction of the same input. Its
/// i8 weights have about 1/254 of the scale, and its i16 result becomes part of the epilogue of the first contraction.
/// ```
/// %y = conv(%x, %w)   ==>   %r = conv(%x, dequantize(%rest_i8)) ; %rd = dequantize(quantize(%r) : i16)
///                           %y = add(conv(%x, dequantize(%w_i8)), %rd)
/// ```
/// The sums are exact and the same on every engine. The i16 range covers the largest possible sum for inputs of `form`,
/// the form of `op`'s input, so that nothing is clipped. The inputs of `op` must be quantised already; its weight must
/// be float. Returns the second contraction; null if the i8 weights are exact.
mlir::Operation *splitWeight(mlir::OpBuilder &builder, mlir::Operation *op, const IntegerForm &form);

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_WEIGHTS_RESIDUALWEIGHTS_H
