//===- WeightOnly.h - Integer weights of ops that compute in float --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_WEIGHTS_WEIGHTONLY_H
#define TESSERA_QUANT_TRANSFORMS_WEIGHTS_WEIGHTONLY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "quant/Transforms/Tables/LearnedWeights.h"
#include "quant/Transforms/Tables/QuantizeTable.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera::quant {

/// Replaces the weights of the ops that are assigned W8 or W4 by dequantised i8 constants; see `apply-precision` in
/// Passes.td. `groupSize` is the number of weights along the sum that share a scale in W4, a multiple of 16. Weights in
/// `learned` are used for the ops that it contains; returns the number of these ops. `progress` is called with the
/// number of ops done and the total. Fails if `learned` does not match the model.
llvm::Expected<int64_t> quantizeWeightsOnly(mlir::func::FuncOp function, int64_t groupSize,
                                            const std::optional<LearnedWeights> &learned,
                                            llvm::function_ref<void(size_t, size_t)> progress);

/// The integer form of weights: 4 or 8 bits, and the group of weights that share a scale.
struct WeightForm {
  int bits;
  int64_t group; ///< number of weights along the depth of an output channel that share a scale, each with all its taps
};
/// Returns the form of the constant weights of a contraction, or of a table from which rows are gathered.
WeightForm weightFormOf(mlir::Operation *op, bool fourBits, int64_t groupSize);

/// Returns true if the input channels of a convolution or matmul fill a group of 4-bit weights.
bool hasGroups(mlir::Operation *op);

/// Returns true if the weights of `op` have 8 bits even in W4. They do not need groups. `isLast`: no other contraction
/// depends on its result.
bool keepsEightBits(mlir::Operation *op, bool isLast);

/// Returns true if the calibration has chosen 8-bit weights for the op in a W4 model.
llvm::Expected<bool> isLearnedInEightBits(mlir::Operation *op, int64_t groupSize, const LearnedWeights &learned);

/// Returns the contractions on whose results no other contraction depends.
llvm::DenseSet<mlir::Operation *> lastContractions(mlir::func::FuncOp function);

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_WEIGHTS_WEIGHTONLY_H
