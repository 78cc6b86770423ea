//===- Windows.cpp - Geometry of convolutions and pools -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Tflite/Windows.h"

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

/// Returns the geometry of a convolution of input 0 with |weight| [OC, I, H, W].
template <typename Options>
std::optional<ConvolutionForm> formOf(OperatorImporter &n, const Options &options, Value weight, int64_t groups) {
  int64_t strideH = options.stride_h(), strideW = options.stride_w();
  int64_t dilationH = options.dilation_h_factor(), dilationW = options.dilation_w_factor();
  if (!checkWindow(n, {strideH, strideW, dilationH, dilationW}, options.padding())) {
    return std::nullopt;
  }
  llvm::ArrayRef<int64_t> in = n.shape(n.input(0)), kernel = n.shape(weight);
  ConvolutionForm form;
  form.weight = weight, form.groups = groups, form.activation = options.fused_activation_function();
  form.strides = {strideH, strideW}, form.dilations = {dilationH, dilationW};
  form.pads = padsOf(Window{in[1], kernel[2], strideH, dilationH}, Window{in[2], kernel[3], strideW, dilationW},
                     options.padding());
  return form;
}

} // namespace

/// The weights are [OC, H, W, C / groups].
std::optional<ConvolutionForm> convolutionForm(OperatorImporter &n) {
  const auto &options = n.options<tflite::Conv2DOptions>();
  Value x = n.input(0), weight = n.input(1);
  if (!n.requireRank(x, 4) || !n.requireRank(weight, 4)) {
    return std::nullopt;
  }
  int64_t depth = n.shape(weight)[3], channels = n.shape(x)[3];
  if (depth < 1 || channels % depth != 0) {
    n.fail(llvm::formatv("the weights have depth {0}, which does not divide the {1} channels", depth, channels));
    return std::nullopt;
  }
  return formOf(n, options, n.toChannelsFirst(weight), channels / depth);
}

/// The weights are [1, H, W, C * multiplier].
std::optional<ConvolutionForm> depthwiseForm(OperatorImporter &n) {
  const auto &options = n.options<tflite::DepthwiseConv2DOptions>();
  Value x = n.input(0), weight = n.input(1);
  if (!n.requireRank(x, 4) || !n.requireRank(weight, 4)) {
    return std::nullopt;
  }
  int64_t channels = n.shape(x)[3], results = n.shape(weight)[3], multiplier = options.depth_multiplier();
  if (n.shape(weight)[0] != 1 || channels < 1 || results % channels != 0 ||
      (multiplier != 0 && channels * multiplier != results)) {
    n.fail(llvm::formatv("{0} channels with multiplier {1} do not fit weights of {2} channels", channels, multiplier,
                         results));
    return std::nullopt;
  }
  return formOf(n, options, n.b.transpose(weight, {3, 0, 1, 2}), channels);
}

/// The inputs are the shape of the result, weights [OC, H, W, C], x and a bias.
std::optional<ConvolutionForm> transposedForm(OperatorImporter &n) {
  const auto &options = n.options<tflite::TransposeConvOptions>();
  Ints out = n.constantInts(0, "the output shape");
  Value weight = n.input(1), x = n.input(2);
  ConvolutionForm form;
  form.strides = {options.stride_h(), options.stride_w()}, form.dilations = {1, 1};
  form.activation = options.fused_activation_function();
  if (!n.requireRank(x, 4) || !n.requireRank(weight, 4) || !checkWindow(n, form.strides, options.padding())) {
    return std::nullopt;
  }
  if (out.size() != 4 || out[0] != n.shape(x)[0] || out[3] != n.shape(weight)[0]) {
    n.fail("its output shape does not fit its operands");
    return std::nullopt;
  }
  form.pads.resize(4), form.outputPadding.resize(2);
  for (int d = 0; d < 2; ++d) {
    int64_t size = out[1 + d], in = n.shape(x)[1 + d], kernel = n.shape(weight)[1 + d], stride = form.strides[d];
    form.pads[d] = padsOf(Window{size, kernel, stride, 1}, options.padding()).first;
    int64_t rest = size - (stride * (in - 1) + kernel - form.pads[d]);
    form.outputPadding[d] = std::max<int64_t>(rest, 0), form.pads[2 + d] = std::max<int64_t>(-rest, 0);
    if (size < 1 || form.outputPadding[d] >= stride) {
      n.unsupported(llvm::formatv("its output size {0} for input size {1} is not supported", size, in));
      return std::nullopt;
    }
  }
  form.weight = n.b.transpose(weight, {3, 0, 1, 2});
  return form;
}

std::optional<PoolForm> poolForm(OperatorImporter &n) {
  const auto &options = n.options<tflite::Pool2DOptions>();
  Value x = n.input(0);
  PoolForm form;
  form.kernel = {options.filter_height(), options.filter_width()};
  form.strides = {options.stride_h(), options.stride_w()};
  form.activation = options.fused_activation_function();
  if (!n.requireRank(x, 4) || !checkWindow(n, form.kernel, options.padding()) ||
      !checkWindow(n, form.strides, options.padding())) {
    return std::nullopt;
  }
  form.pads = padsOf(Window{n.shape(x)[1], form.kernel[0], form.strides[0], 1},
                     Window{n.shape(x)[2], form.kernel[1], form.strides[1], 1}, options.padding());
  return form;
}

/// Without keep_num_dims, x is a matrix whose rows have as many elements as those of the weights [N, K].
Value fullyConnectedRows(OperatorImporter &n, const tflite::FullyConnectedOptions &options, int64_t depth) {
  if (options.weights_format() != tflite::FullyConnectedOptionsWeightsFormat::DEFAULT) {
    n.unsupported("shuffled weights are not supported");
  }
  Value x = n.input(0);
  return !options.keep_num_dims() || n.rank(x) < 2 ? n.reshape(x, {-1, depth}) : x;
}

} // namespace tessera::top::tflite_import
