//===- Convolutions.cpp - Handlers of convolution, pooling, products ------===//
// SPDX-License-Identifier: Apache-2.0
//
// TensorFlow Lite keeps channels last, Top keeps them first. Each handler transposes its operands and its result; the
// Top pipeline cancels the transposes between operators.
#include "top_dialect/Import/Tflite/OperatorImporter.h"

#include "llvm/Support/FormatVariadic.h"

namespace tessera::top::tflite_import {
namespace {

/// The geometry of one dim of a window.
struct Window {
  int64_t in, kernel, stride, dilation;
};

/// Returns the padding before and after a dim.
std::pair<int64_t, int64_t> padsOf(const Window &w, tflite::Padding padding) {
  if (padding == tflite::Padding::VALID) {
    return {0, 0};
  }
  int64_t out = (w.in + w.stride - 1) / w.stride;
  int64_t total = std::max<int64_t>((out - 1) * w.stride + (w.kernel - 1) * w.dilation + 1 - w.in, 0);
  return {total / 2, total - total / 2};
}

bool checkWindow(OperatorImporter &n, llvm::ArrayRef<int64_t> numbers, tflite::Padding padding) {
  constexpr int64_t kMost = 1 << 20;
  if (llvm::any_of(numbers, [](int64_t number) { return number < 1 || number > kMost; })) {
    n.fail("strides, dilations and windows must be positive");
  }
  if (padding != tflite::Padding::SAME && padding != tflite::Padding::VALID) {
    n.unsupported(llvm::formatv("padding {0} is not supported; supported are SAME and VALID", int(padding)));
  }
  return !n.failed();
}

/// Returns all begins, then all ends, as Top expects pads.
Ints padsOf(const Window &h, const Window &w, tflite::Padding padding) {
  auto [top, bottom] = padsOf(h, padding);
  auto [left, right] = padsOf(w, padding);
  return {top, left, bottom, right};
}

/// Computes a convolution with |weight| [OC, I, H, W].
template <typename Options>
void convolve(OperatorImporter &n, const Options &options, Value x, Value weight, int64_t groups) {
  int64_t strideH = options.stride_h(), strideW = options.stride_w();
  int64_t dilationH = options.dilation_h_factor(), dilationW = options.dilation_w_factor();
  if (!checkWindow(n, {strideH, strideW, dilationH, dilationW}, options.padding())) {
    return;
  }
  llvm::ArrayRef<int64_t> in = n.shape(x), kernel = n.shape(weight);
  Ints pads = padsOf(Window{in[1], kernel[2], strideH, dilationH}, Window{in[2], kernel[3], strideW, dilationW},
                     options.padding());
  Value y = n.create<ConvOp>(n.toChannelsFirst(x), weight, n.optionalInput(2), Ints{strideH, strideW}, pads,
                             Ints{dilationH, dilationW}, groups, false, llvm::APFloat(-1.0));
  n.setOutput(0, n.toChannelsLast(n.activate(y, options.fused_activation_function())));
}

/// The weights are [OC, H, W, C / groups].
void conv2d(OperatorImporter &n) {
  const auto &options = n.options<tflite::Conv2DOptions>();
  Value x = n.input(0), weight = n.input(1);
  if (!n.requireRank(x, 4) || !n.requireRank(weight, 4)) {
    return;
  }
  int64_t depth = n.shape(weight)[3], channels = n.shape(x)[3];
  if (depth < 1 || channels % depth != 0) {
    n.fail(llvm::formatv("the weights have depth {0}, which does not divide the {1} channels", depth, channels));
    return;
  }
  convolve(n, options, x, n.toChannelsFirst(weight), channels / depth);
}

/// The weights are [1, H, W, C * multiplier].
void depthwiseConv2d(OperatorImporter &n) {
  const auto &options = n.options<tflite::DepthwiseConv2DOptions>();
  Value x = n.input(0), weight = n.input(1);
  if (!n.requireRank(x, 4) || !n.requireRank(weight, 4)) {
    return;
  }
  int64_t channels = n.shape(x)[3], results = n.shape(weight)[3], multiplier = options.depth_multiplier();
  if (n.shape(weight)[0] != 1 || channels < 1 || results % channels != 0 ||
      (multiplier != 0 && channels * multiplier != results)) {
    n.fail(llvm::formatv("{0} channels with multiplier {1} do not fit weights of {2} channels", channels, multiplier,
                         results));
    return;
  }
  convolve(n, options, x, n.b.transpose(weight, {3, 0, 1, 2}), channels);
}

/// The inputs are the shape of the result, weights [OC, H, W, C], x and a bias.
void transposeConv(OperatorImporter &n) {
  const auto &options = n.options<tflite::TransposeConvOptions>();
  Ints out = n.constantInts(0, "the output shape");
  Value weight = n.input(1), x = n.input(2);
  Ints strides = {options.stride_h(), options.stride_w()};
  if (!n.requireRank(x, 4) || !n.requireRank(weight, 4) || !checkWindow(n, strides, options.padding())) {
    return;
  }
  if (out.size() != 4) {
    n.fail(llvm::formatv("its output shape has {0} entries; expected 4", out.size()));
    return;
  }
  Ints pads(4), extra(2);
  for (int d = 0; d < 2; ++d) {
    int64_t size = out[1 + d], in = n.shape(x)[1 + d], kernel = n.shape(weight)[1 + d];
    pads[d] = padsOf(Window{size, kernel, strides[d], 1}, options.padding()).first;
    int64_t rest = size - (strides[d] * (in - 1) + kernel - pads[d]);
    extra[d] = std::max<int64_t>(rest, 0), pads[2 + d] = std::max<int64_t>(-rest, 0);
    if (size < 1 || extra[d] >= strides[d]) {
      n.unsupported(llvm::formatv("its output size {0} for input size {1} is not supported", size, in));
      return;
    }
  }
  Value y = n.create<ConvTransposeOp>(n.toChannelsFirst(x), n.b.transpose(weight, {3, 0, 1, 2}), n.optionalInput(3),
                                      strides, pads, Ints{1, 1}, extra, 1, false, llvm::APFloat(-1.0));
  y = n.toChannelsLast(n.activate(y, options.fused_activation_function()));
  if (!n.failed() && n.shape(y) != llvm::ArrayRef<int64_t>(out)) {
    n.fail("its output shape does not fit its operands");
  }
  n.setOutput(0, y);
}

template <typename Op>
void pool(OperatorImporter &n) {
  const auto &options = n.options<tflite::Pool2DOptions>();
  Value x = n.input(0);
  Ints kernel = {options.filter_height(), options.filter_width()};
  Ints strides = {options.stride_h(), options.stride_w()};
  if (!n.requireRank(x, 4) || !checkWindow(n, kernel, options.padding()) ||
      !checkWindow(n, strides, options.padding())) {
    return;
  }
  Ints pads = padsOf(Window{n.shape(x)[1], kernel[0], strides[0], 1}, Window{n.shape(x)[2], kernel[1], strides[1], 1},
                     options.padding());
  Value first = n.toChannelsFirst(x), y;
  if constexpr (std::is_same_v<Op, MaxPoolOp>) {
    y = n.create<MaxPoolOp>(first, kernel, strides, pads, Ints{1, 1}, false);
  } else {
    y = n.create<AvgPoolOp>(first, kernel, strides, pads, Ints{1, 1}, false, false);
  }
  n.setOutput(0, n.toChannelsLast(n.activate(y, options.fused_activation_function())));
}

/// Without keep_num_dims, x is a matrix whose rows have as many elements as those of the weights [N, K].
void fullyConnected(OperatorImporter &n) {
  const auto &options = n.options<tflite::FullyConnectedOptions>();
  Value x = n.input(0), weight = n.input(1);
  if (options.weights_format() != tflite::FullyConnectedOptionsWeightsFormat::DEFAULT) {
    n.unsupported("shuffled weights are not supported");
  }
  if (!n.requireRank(weight, 2)) {
    return;
  }
  int64_t depth = n.shape(weight)[1];
  if (!options.keep_num_dims() || n.rank(x) < 2) {
    x = n.reshape(x, {-1, depth});
  }
  Value y = n.b.linear(x, weight, n.optionalInput(2));
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
