//===- OpBuilders.h - Ops shared by several operators -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Geometry and options come from the attributes of the node, which have the same names in quantised and float
// operators.
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_OPERATORS_OPBUILDERS_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_OPERATORS_OPBUILDERS_H

#include "top_dialect/Import/Onnx/NodeImporter.h"

namespace tessera::top::onnx_import {

/// Creates a convolution with the attributes of Conv. |bias| may be null.
mlir::Value makeConv(NodeImporter &n, mlir::Value x, mlir::Value w, mlir::Value bias);
/// Applies the activation that a fused operator names, with its parameters.
mlir::Value makeFusedActivation(NodeImporter &n, mlir::Value y, llvm::ArrayRef<double> params);
/// Computes alpha a b + beta c with the inputs and attributes of Gemm.
mlir::Value makeGemm(NodeImporter &n);
/// Multiplies like numpy.matmul: a 1-D operand gets an extra dim, which the result does not have.
mlir::Value makeNumpyMatMul(NodeImporter &n, mlir::Value a, mlir::Value b);
/// Computes the mean over windows with the attributes of AveragePool.
mlir::Value makeAveragePool(NodeImporter &n, mlir::Value x);
/// Repeats each entry of |parameter| along |axis| |block| times and cuts the result to |size|.
mlir::Value repeatBlocks(NodeImporter &n, mlir::Value parameter, int64_t axis, int64_t block, int64_t size);
/// |x| quantised to u8, with a scale and zero point computed from its range at run time.
struct DynamicallyQuantised {
  mlir::Value values, scale, zeroPoint;
};
DynamicallyQuantised makeDynamicQuantize(NodeImporter &n, mlir::Value x);
/// Creates BatchNormalization with training_mode, which uses the statistics of its input. Sets all three outputs.
void makeTrainingBatchNorm(NodeImporter &n);
/// Returns the indices of the dims after batch and channels.
Ints spatialAxes(NodeImporter &n, mlir::Value x);
/// Computes softmax, or its logarithm, as defined since opset 13: along the attribute axis.
mlir::Value makeSoftmax(NodeImporter &n, mlir::Value x, bool log);
/// Computes softmax as defined before opset 13: the dims from the attribute axis on count as one dim.
mlir::Value makeFlatSoftmax(NodeImporter &n, mlir::Value x, bool log);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_OPERATORS_OPBUILDERS_H
