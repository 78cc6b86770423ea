//===- Intervals.h - What numbers tensors hold ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_INTERVALS_H
#define TESSERA_CODEGEN_NPU_INTERVALS_H

#include "codegen/Npu/VectorProgram.h"
#include "mlir/IR/Value.h"

namespace tessera::npu {

/// Numbers that a tensor's elements lie between: those of its type, or fewer where what makes it tells.
Interval intervalOf(mlir::Value value);

/// The same of the integer sums of a convolution or matrix product, before its epilogue.
Interval intervalOfSums(mlir::Operation *op);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_INTERVALS_H
