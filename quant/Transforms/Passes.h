//===- Passes.h - Quantisation passes on Top --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "top_dialect/IR/TopDialect.h"

namespace tessera::quant {

#define GEN_PASS_DECL
#include "quant/Transforms/Passes.h.inc"

/// Registers `--top-quantize` and `--top-isolate`.
void registerQuantTransforms();

} // namespace tessera::quant
