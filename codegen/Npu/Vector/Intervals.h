//===- Intervals.h - Ranges of tensors' values ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_VECTOR_INTERVALS_H
#define TESSERA_CODEGEN_NPU_VECTOR_INTERVALS_H

#include "codegen/Npu/Vector/VectorProgram.h"
#include "device_dialect/IR/DeviceOps.h"
#include "mlir/IR/Value.h"

namespace tessera::npu {

/// Returns the range of a tensor's elements: that of its type, or a smaller one derived from the op that computes it.
Interval intervalOf(mlir::Value value);

/// Returns the range of the integer sums of a convolution or matmul, before its epilogue.
Interval intervalOfSums(mlir::Operation *op);

/// Returns the range of running sums along an axis, as if they did not wrap to their type.
Interval intervalOfRunningSums(device::CumSumOp op);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_VECTOR_INTERVALS_H
