//===- NarrowFloats.h - Weights and activations in 16-bit floats -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_NARROWFLOATS_H
#define TESSERA_QUANT_TRANSFORMS_NARROWFLOATS_H

#include "quant/Transforms/Precision/Decisions.h"

namespace tessera::quant {

/// Inserts pairs of casts after stored results, and casts of 16-bit constants before weights (see `apply-precision` in
/// Passes.td), for the ops that are assigned BF16 or F16. Returns the ops whose weights or results are in 16 bits.
llvm::DenseSet<mlir::Operation *> narrowFloats(mlir::func::FuncOp function, const Decisions &decisions);

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_NARROWFLOATS_H
