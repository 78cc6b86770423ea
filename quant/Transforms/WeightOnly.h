//===- WeightOnly.h - Integer weights of ops that compute in float -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quant/Transforms/Decisions.h"
#include "quant/Transforms/LearnedWeights.h"

namespace tessera::quant {

/// What became of the ops whose weights were to be integers.
struct WeightOnly {
  llvm::DenseSet<mlir::Operation *> ops;
  llvm::MapVector<mlir::Operation *, std::string> kept; ///< could not, and why
  int64_t learned = 0;                                  ///< of `ops`, those whose integers run_calibration chose
};

/// Makes the weights of ops of precision W8 and W4 (by `decisions.asked`, else `precision`) i8 constants, dequantised
/// (see `top-quantize` in Passes.td). `groupSize`: products that share a scale in W4, a multiple of 16. `learned`:
/// taken for the ops that it holds. `progress`: ops done, of all. Fails where `learned` does not fit.
llvm::Expected<WeightOnly> quantizeWeightsOnly(mlir::func::FuncOp function, const Decisions &decisions,
                                               Precision precision, int64_t groupSize,
                                               const std::optional<LearnedWeights> &learned,
                                               llvm::function_ref<void(size_t, size_t)> progress);

/// What an op's weights become where they alone are to be integers of 4 (`fourBits`) or 8 bits.
struct WeightForm {
  int bits;
  int64_t group; ///< weights [depth] of an output channel that share a scale, with all taps of each
};
/// Of a product that has constant weights; `isLast`: no other product reads what it makes.
WeightForm weightFormOf(mlir::Operation *op, bool fourBits, int64_t groupSize, bool isLast);

/// Products that no other product comes after.
llvm::DenseSet<mlir::Operation *> lastProducts(mlir::func::FuncOp function);

} // namespace tessera::quant
