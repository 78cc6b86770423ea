//===- WeightTerms.h - Weights as the sum of two i8 constants ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/Builders.h"
#include "quant/Transforms/Decisions.h"

namespace tessera::quant {

/// Whether the table wants the weights of a product in two terms: its line is that of the tensor that the product
/// makes.
bool hasTwoTerms(const Range *ofResult);

/// Adds what rounding to 8 bits left over of the weights of a product of integers: a second product of the same input,
/// with i8 weights of about 1/254 of the scale, whose result is i16 and becomes part of the epilogue of the first.
/// ```
/// %y = conv(%x, %w)   ==>   %r = conv(%x, dequantize(%rest_i8)) ; %rd = dequantize(quantize(%r) : i16)
///                           %y = add(conv(%x, dequantize(%w_i8)), %rd)
/// ```
/// Sums are as exact as those of any product of integers, on every engine. The i16 reach the largest sum that inputs of
/// `form`, which is that of `op`'s input, can make: nothing is clipped. `op` has its pairs already, but its weight is
/// float. Returns the second product; null where 8 bits leave nothing.
mlir::Operation *splitWeight(mlir::OpBuilder &builder, mlir::Operation *op, const IntegerForm &form);

} // namespace tessera::quant
