//===- OpKinds.h - What an op is to the quantiser ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/Builders.h"
#include <optional>
#include <string>

namespace tessera::quant {

enum class OpKind {
  product,     ///< conv, conv_transpose, matmul: operand 0 and constant operand 1 in integers, sums in i32
  pairwise,    ///< matmul of two activations, both in integers; only where it is asked for
  attention,   ///< q, k and v in integers of 8 bits, powers rounded to kPowerLevels, scores and result in float
  elementwise, ///< reads and writes integers, computes in float
  move,        ///< only moves operand 0, or picks from it by size: its result has the same parameters
  concat,      ///< only moves: all operands and the result have the same parameters
  blend,       ///< means and sums of integers, with parameters of their own: avg_pool, reduce, interpolating resize
  other,       ///< has no integer form
};

/// What powers of attention, at most 1, are rounded to: bytes without sign.
inline constexpr int64_t kPowerLevels = 255;

OpKind kindOf(mlir::Operation *op);

/// Whether `op` is a matmul of which no operand is constant.
bool multipliesActivations(mlir::Operation *op);

/// The constant of `op` (a product) that becomes i8, and along which of its dims the output channels lie.
struct WeightOperand {
  mlir::OpOperand *operand;
  int64_t channelDim;
};
WeightOperand weightOf(mlir::Operation *op);

/// `sum`, for the result of a product, behind the rectifier that the product has; itself where it has none.
mlir::Value rectified(mlir::OpBuilder &builder, mlir::Operation *op, mlir::Value sum);

/// The bias of a product, null if it has none.
mlir::Value biasOf(mlir::Operation *op);

/// Elements that one result of a blend, or products that one of a pairwise op, is made of.
int64_t countBlended(mlir::Operation *op);

/// Products summed into one result element of a product whose weights have static dims.
int64_t reductionLength(mlir::Operation *op);

/// Multiplications of a product with static dims; 0 for other ops.
int64_t countProducts(mlir::Operation *op);

/// Why a product (or pairwise op, or attention) cannot run on integers whatever its inputs' ranges are; nothing if it
/// can.
std::optional<std::string> reasonAgainst(mlir::Operation *op);

} // namespace tessera::quant
