//===- WeightOnly.h - Integer weights of ops that compute in float -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quant/Transforms/Decisions.h"

namespace tessera::quant {

/// What became of the ops whose weights were to be integers.
struct WeightOnly {
  llvm::DenseSet<mlir::Operation *> ops;
  llvm::MapVector<mlir::Operation *, std::string> kept; ///< could not, and why
};

/// Makes the weights of ops of precision W8 and W4 (by `decisions.asked`, else `precision`) i8 constants, dequantised
/// (see `top-quantize` in Passes.td). `groupSize`: products that share a scale in W4, a multiple of 16.
WeightOnly quantizeWeightsOnly(mlir::func::FuncOp function, const Decisions &decisions, Precision precision,
                               int64_t groupSize);

} // namespace tessera::quant
