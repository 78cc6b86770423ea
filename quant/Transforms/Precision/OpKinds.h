//===- OpKinds.h - Classifies ops for the quantiser -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_PRECISION_OPKINDS_H
#define TESSERA_QUANT_TRANSFORMS_PRECISION_OPKINDS_H

#include "mlir/IR/Builders.h"
#include <optional>
#include <string>

namespace tessera::quant {

/// Returns true if `value` is a tensor of f32.
inline bool isF32(mlir::Value value) {
  auto type = llvm::dyn_cast<mlir::RankedTensorType>(value.getType());
  return type && type.getElementType().isF32();
}

/// The role of an op in quantisation.
enum class OpKind {
  contraction, ///< conv, conv_transpose, matmul: operand 0 and constant operand 1 in integers, sums in i32
  pairwise,    ///< matmul of two activations, both in integers; only on request
  attention,   ///< q, k and v in 8-bit integers, exponentials rounded to kPowerLevels, scores and result in float
  elementwise, ///< reads and writes integers, computes in float
  move,        ///< moves or selects elements of operand 0: the result has the same parameters
  concat,      ///< moves elements: all operands and the result have the same parameters
  blend,       ///< sums or means of integers with their own parameters: avg_pool, reduce, interpolating resize
  other,       ///< does not have an integer form
};

/// Number of steps, in unsigned bytes, to which attention rounds its exponentials e^(score - largest score).
inline constexpr int64_t kPowerLevels = 255;

/// Returns the role of `op`. Matmuls of two activations are classified as `contraction`; see multipliesActivations.
OpKind kindOf(mlir::Operation *op);

/// Checks that `op` is a matmul with two non-constant operands.
bool multipliesActivations(mlir::Operation *op);

/// The constant operand of `op` (of kind `contraction`) that becomes i8, and its dim of output channels.
struct WeightOperand {
  mlir::OpOperand *operand;
  int64_t channelDim;
};
WeightOperand weightOf(mlir::Operation *op);

/// Returns `sum` after the activation clamp of `op` (of kind `contraction`), or `sum` itself if `op` has none.
mlir::Value rectified(mlir::OpBuilder &builder, mlir::Operation *op, mlir::Value sum);

/// Returns the bias of a convolution or matmul, or null.
mlir::Value biasOf(mlir::Operation *op);

/// Returns the number of elements per result of a blend, or of products per result of a pairwise op. Open dims count
/// with their largest size, because the number bounds sums.
int64_t countBlended(mlir::Operation *op);

/// Returns the number of products summed per result element. Requires weights with static dims.
int64_t reductionLength(mlir::Operation *op);

/// Returns the number of multiplications of a convolution or matmul with static dims; 0 for other ops.
int64_t countMacs(mlir::Operation *op);

/// Checks that `user` is fused into the op that computes `v`, so that `v` is never stored. `takesEpilogue` says which
/// ops compute elementwise ops on their results.
bool fusesInto(mlir::Value v, mlir::Operation *user, llvm::function_ref<bool(mlir::Operation *)> takesEpilogue);

/// Returns why a convolution, matmul or attention cannot run on integers, for any ranges of its inputs; nothing if it
/// can.
std::optional<std::string> reasonAgainst(mlir::Operation *op);

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_PRECISION_OPKINDS_H
