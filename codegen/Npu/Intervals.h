//===- Intervals.h - What numbers tensors hold ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_INTERVALS_H
#define TESSERA_CODEGEN_NPU_INTERVALS_H

#include "codegen/Npu/VectorProgram.h"
#include "device_dialect/IR/DeviceOps.h"
#include "mlir/IR/Value.h"

namespace tessera::npu {

/// Numbers that a tensor's elements lie between: those of its type, or fewer where what makes it tells.
Interval intervalOf(mlir::Value value);

/// The same of the integer sums of a convolution or matrix product, before its epilogue.
Interval intervalOfSums(mlir::Operation *op);

/// The same of sums along an axis, those on the way to them included, were they not cut to their type.
Interval intervalOfRunningSums(device::CumSumOp op);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_INTERVALS_H
