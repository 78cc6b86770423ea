//===- WeightOnly.h - Integer weights of ops that compute in float --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_WEIGHTONLY_H
#define TESSERA_QUANT_TRANSFORMS_WEIGHTONLY_H

#include "quant/Transforms/Decisions.h"
#include "quant/Transforms/LearnedWeights.h"

namespace tessera::quant {

/// Results for the ops of precision W8 or W4.
struct WeightOnly {
  llvm::DenseSet<mlir::Operation *> ops;
  llvm::MapVector<mlir::Operation *, std::string> kept; ///< ops that stay unchanged, with the reason
  int64_t learned = 0;                                  ///< number of `ops` whose integers run_calibration chose
};

/// Replaces the weights of ops of precision W8 and W4 (by `decisions.asked`, else `precision`) by dequantised i8
/// constants; see `top-quantize` in Passes.td. `groupSize` is the number of weights along the sum that share a scale in
/// W4, a multiple of 16. Weights in `learned` are used for the ops that it contains. `progress` is called with the
/// number of ops done and the total. Fails if `learned` does not match the model.
llvm::Expected<WeightOnly> quantizeWeightsOnly(mlir::func::FuncOp function, const Decisions &decisions,
                                               Precision precision, int64_t groupSize,
                                               const std::optional<LearnedWeights> &learned,
                                               llvm::function_ref<void(size_t, size_t)> progress);

/// The integer form of weights: 4 or 8 bits, and the group of weights that share a scale.
struct WeightForm {
  int bits;
  int64_t group; ///< number of weights along the depth of an output channel that share a scale, each with all its taps
};
/// Returns the form of the constant weights of a contraction. `isLast`: no other contraction depends on its result.
WeightForm weightFormOf(mlir::Operation *op, bool fourBits, int64_t groupSize, bool isLast);

/// Returns the contractions on whose results no other contraction depends.
llvm::DenseSet<mlir::Operation *> lastContractions(mlir::func::FuncOp function);

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_WEIGHTONLY_H
