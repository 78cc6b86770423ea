//===- WeightLifetime.h - When weights are given up ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace tessera::top {

/// As long as it lives, ops of |module| alone hold tensors of the context's weight store: no clone of it, and no part
/// that was cut out, is in use.
class SoleHolder {
public:
  explicit SoleHolder(mlir::ModuleOp module);
  ~SoleHolder();
  SoleHolder(const SoleHolder &) = delete;
  SoleHolder &operator=(const SoleHolder &) = delete;

private:
  mlir::MLIRContext *context;
};

/// Gives up what no `top.weight` of the module around |op| names, if that module is the sole holder; else does nothing.
/// Between phases, and in passes that replace weights, between one weight and the next. Views of what is given up
/// become invalid.
void dropUnheldWeights(mlir::Operation *op);

/// Says that |constant| is not read for a while (see WeightStore::release). Values that are no weight are left alone.
void releaseWeight(mlir::Value constant);

} // namespace tessera::top
