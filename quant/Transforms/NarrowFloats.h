//===- NarrowFloats.h - Weights and activations in 16-bit floats -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_NARROWFLOATS_H
#define TESSERA_QUANT_TRANSFORMS_NARROWFLOATS_H

#include "quant/Transforms/Decisions.h"

namespace tessera::quant {

/// Results for the ops of precision BF16 or F16.
struct NarrowFloats {
  llvm::DenseSet<mlir::Operation *> ops;                ///< ops whose weights and stored results are in 16 bits
  llvm::MapVector<mlir::Operation *, std::string> kept; ///< ops that had to stay f32, with the reason
};

/// Inserts pairs of casts after stored results, and casts of 16-bit constants before weights (see `top-quantize` in
/// Passes.td). This applies to ops outside of `decisions.integers` whose precision (by `decisions.asked`, else
/// `precision`) is BF16 or F16. `table` may be empty; its ranges show which tensors exceed f16.
NarrowFloats narrowFloats(mlir::func::FuncOp function, const CalibrationTable &table, const Decisions &decisions,
                          Precision precision);

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_NARROWFLOATS_H
