//===- Passes.h - Quantisation passes on Top --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_PASSES_H
#define TESSERA_QUANT_TRANSFORMS_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "top_dialect/IR/TopDialect.h"

namespace tessera::quant {

#define GEN_PASS_DECL
#include "quant/Transforms/Passes.h.inc"

/// Registers the passes, and the pipeline `--top-quantize` of assign-precision and apply-precision.
void registerQuantTransforms();

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_PASSES_H
