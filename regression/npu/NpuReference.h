//===- NpuReference.h - Reference of float convolutions on NPUs -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_REGRESSION_NPU_NPUREFERENCE_H
#define TESSERA_REGRESSION_NPU_NPUREFERENCE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "top_dialect/Reference/Evaluator.h"

namespace tessera::npu {

/// Returns the number of float convolutions of a function whose kernel rows may be folded into channels (Im2col.cpp).
unsigned countFoldable(mlir::func::FuncOp function);

/// Evaluates the device reference, except that float convolutions, whose order of sums the device dialect leaves open,
/// use the order of the matrix unit (docs/isa.md). Bit i of |folded|: the i-th convolution that countFoldable counts
/// has its kernel rows folded into channels.
llvm::FailureOr<top::TensorMap> evaluateAsNpu(mlir::func::FuncOp function, const top::TensorMap &inputs,
                                              uint64_t folded);

} // namespace tessera::npu

#endif // TESSERA_REGRESSION_NPU_NPUREFERENCE_H
