//===- OpBuilders.h - Ops that several operators are made of -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Geometry and options come from the attributes of the node, which quantised operators share with the float ones.
#pragma once

#include "top_dialect/Import/Onnx/NodeImporter.h"

namespace tessera::top::onnx_import {

/// Convolution with the attributes of Conv; |bias| may be null.
mlir::Value makeConv(NodeImporter &n, mlir::Value x, mlir::Value w, mlir::Value bias);
/// The activation that a fused operator names, with its parameters.
mlir::Value makeFusedActivation(NodeImporter &n, mlir::Value y, llvm::ArrayRef<double> params);
/// alpha a b + beta c with the inputs and attributes of Gemm.
mlir::Value makeGemm(NodeImporter &n);
/// numpy.matmul: 1-D operands get a dim that the result loses again.
mlir::Value makeNumpyMatMul(NodeImporter &n, mlir::Value a, mlir::Value b);
/// Mean over windows with the attributes of AveragePool.
mlir::Value makeAveragePool(NodeImporter &n, mlir::Value x);
/// Each entry of |parameter|, one per |block| elements along |axis|, repeated for them and cut to |size|.
mlir::Value repeatBlocks(NodeImporter &n, mlir::Value parameter, int64_t axis, int64_t block, int64_t size);
/// u8 integers of |x| with a scale and zero point that its range decides at run time.
struct DynamicallyQuantised {
  mlir::Value values, scale, zeroPoint;
};
DynamicallyQuantised makeDynamicQuantize(NodeImporter &n, mlir::Value x);
/// BatchNormalization with training_mode: by the statistics of its input; sets all three outputs.
void makeTrainingBatchNorm(NodeImporter &n);
/// The dims behind batch and channels.
Ints spatialAxes(NodeImporter &n, mlir::Value x);
/// Softmax (or its logarithm) as of opset 13, along the attribute axis.
mlir::Value makeSoftmax(NodeImporter &n, mlir::Value x, bool log);
/// Softmax before opset 13: the dims from the attribute axis on count as one.
mlir::Value makeFlatSoftmax(NodeImporter &n, mlir::Value x, bool log);

} // namespace tessera::top::onnx_import
