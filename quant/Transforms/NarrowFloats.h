//===- NarrowFloats.h - Weights and activations in 16-bit floats -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quant/Transforms/Decisions.h"

namespace tessera::quant {

/// What became of the ops that were to be held in f16 or bf16.
struct NarrowFloats {
  llvm::DenseSet<mlir::Operation *> ops;                ///< hold weights and stored results so
  llvm::MapVector<mlir::Operation *, std::string> kept; ///< could not, and why
};

/// Puts pairs of casts behind results that are stored, and casts of narrow constants before weights (see `top-quantize`
/// in Passes.td), for all ops outside of `decisions.integers` whose precision, by `decisions.asked` or else
/// `precision`, is BF16 or F16. `table` may be empty: it tells which tensors f16 cannot hold.
NarrowFloats narrowFloats(mlir::func::FuncOp function, const CalibrationTable &table, const Decisions &decisions,
                          Precision precision);

} // namespace tessera::quant
