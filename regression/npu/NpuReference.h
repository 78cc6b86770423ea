//===- NpuReference.h - What an NPU makes of float convolutions -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_REGRESSION_NPU_NPUREFERENCE_H
#define TESSERA_REGRESSION_NPU_NPUREFERENCE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "top_dialect/Reference/Evaluator.h"

namespace tessera::npu {

/// Convolutions of a function that sum floats, and whose rows of taps may be channels (FoldRows.cpp).
unsigned countFoldable(mlir::func::FuncOp function);

/// The device reference, but for convolutions of floats: these have no stated order of sums, the matrix unit has one
/// (docs/isa.md). Bit i of |folded|: the i-th of those that countFoldable counts has its rows of taps as channels.
llvm::FailureOr<top::TensorMap> evaluateAsNpu(mlir::func::FuncOp function, const top::TensorMap &inputs,
                                              uint64_t folded);

} // namespace tessera::npu

#endif // TESSERA_REGRESSION_NPU_NPUREFERENCE_H
