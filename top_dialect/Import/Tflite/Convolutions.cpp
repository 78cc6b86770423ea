//===- Convolutions.cpp - Handlers of convolution, pooling, products ------===//
// SPDX-License-Identifier: Apache-2.0
//
// TensorFlow Lite keeps channels last, Top keeps them first. Each handler transposes its operands and its result; the
// Top pipeline cancels the transposes between operators.
#include "top_dialect/Import/Tflite/Windows.h"

namespace tessera::top::tflite_import {
namespace {

/// Computes a convolution.
void convolve(OperatorImporter &n, std::optional<ConvolutionForm> form) {
  if (!form) {
    return;
  }
  Value y = n.create<ConvOp>(n.toChannelsFirst(n.input(0)), form->weight, n.optionalInput(2), form->strides, form->pads,
                             form->dilations, form->groups, false, llvm::APFloat(-1.0));
  n.setOutput(0, n.toChannelsLast(n.activate(y, form->activation)));
}

void conv2d(OperatorImporter &n) { convolve(n, convolutionForm(n)); }

void depthwiseConv2d(OperatorImporter &n) { convolve(n, depthwiseForm(n)); }

void transposeConv(OperatorImporter &n) {
  std::optional<ConvolutionForm> form = transposedForm(n);
  if (!form) {
    return;
  }
  Value y = n.create<ConvTransposeOp>(n.toChannelsFirst(n.input(2)), form->weight, n.optionalInput(3), form->strides,
                                      form->pads, form->dilations, form->outputPadding, 1, false, llvm::APFloat(-1.0));
  n.setOutput(0, n.toChannelsLast(n.activate(y, form->activation)));
}

template <typename Op>
void pool(OperatorImporter &n) {
  std::optional<PoolForm> form = poolForm(n);
  if (!form) {
    return;
  }
  Value first = n.toChannelsFirst(n.input(0)), y;
  if constexpr (std::is_same_v<Op, MaxPoolOp>) {
    y = n.create<MaxPoolOp>(first, form->kernel, form->strides, form->pads, Ints{1, 1}, false);
  } else {
    y = n.create<AvgPoolOp>(first, form->kernel, form->strides, form->pads, Ints{1, 1}, false, false);
  }
  n.setOutput(0, n.toChannelsLast(n.activate(y, form->activation)));
}

void fullyConnected(OperatorImporter &n) {
  const auto &options = n.options<tflite::FullyConnectedOptions>();
  Value weight = n.input(1);
  if (!n.requireRank(weight, 2)) {
    return;
  }
  Value y = n.b.linear(fullyConnectedRows(n, options, n.shape(weight)[1]), weight, n.optionalInput(2));
  n.setOutput(0, n.activate(y, options.fused_activation_function()));
}

void batchMatMul(OperatorImporter &n) {
  const auto &options = n.options<tflite::BatchMatMulOptions>();
  n.setOutput(0, n.create<MatMulOp>(n.input(0), n.input(1), Value(), options.adj_x(), options.adj_y(), false,
                                    llvm::APFloat(-1.0)));
}

} // namespace

llvm::ArrayRef<HandlerEntry> convolutionHandlers() {
  using Code = tflite::BuiltinOperator;
  static const HandlerEntry entries[] = {
      {Code::CONV_2D, conv2d},
      {Code::DEPTHWISE_CONV_2D, depthwiseConv2d},
      {Code::TRANSPOSE_CONV, transposeConv},
      {Code::MAX_POOL_2D, pool<MaxPoolOp>},
      {Code::AVERAGE_POOL_2D, pool<AvgPoolOp>},
      {Code::FULLY_CONNECTED, fullyConnected},
      {Code::BATCH_MATMUL, batchMatMul},
  };
  return entries;
}

} // namespace tessera::top::tflite_import
