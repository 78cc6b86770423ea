//===- Window.cpp - Sliding windows of convolutions and pools -------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/Window.h"

#include "top_dialect/IR/Sizes.h"

using namespace mlir;

namespace tessera::kernels {

std::pair<Value, Value> WindowDim::tapsBelow(KernelBuilder &kb, Value position, int64_t low, int64_t high) const {
  // Taps t with low <= start + t * dilation < high.
  Value start = kb.sub(kb.mul(position, stride), kb.constant(padBegin));
  auto ceilTaps = [&](int64_t bound) {
    // max(0, ceil((bound - start) / dilation)); the dividend is made non-negative first.
    Value distance = kb.max(kb.sub(kb.constant(bound), start), kb.constant(0));
    return kb.min(kb.div(kb.add(distance, dilation - 1), dilation), kb.constant(kernel));
  };
  return {ceilTaps(low), ceilTaps(high)};
}

std::pair<Value, Value> WindowDim::validTaps(KernelBuilder &kb, Value position) const {
  auto [first, last] = interior();
  if (first == 0 && last == output) {
    return {kb.constant(0), kb.constant(kernel)};
  }
  return tapsBelow(kb, position, 0, input);
}

Value WindowDim::paddedTaps(KernelBuilder &kb, Value position) const {
  auto [first, last] = tapsBelow(kb, position, -padBegin, input + padEnd);
  return kb.sub(last, first);
}

std::pair<int64_t, int64_t> WindowDim::interior() const {
  int64_t reach = (kernel - 1) * dilation;
  int64_t first = std::min(output, int64_t(llvm::divideCeil(padBegin, stride)));
  int64_t room = input - 1 - reach + padBegin; // largest start of a window that fits, plus padBegin
  int64_t last = room < 0 ? first : std::clamp(room / stride + 1, first, output);
  return {first, last};
}

Value WindowDim::inputAt(KernelBuilder &kb, Value position, Value tap) const {
  return kb.sub(kb.add(kb.mul(position, stride), kb.mul(tap, dilation)), kb.constant(padBegin));
}

SmallVector<WindowDim> windowDims(RankedTensorType x, RankedTensorType y, ArrayRef<int64_t> kernel,
                                  ArrayRef<int64_t> strides, ArrayRef<int64_t> pads, ArrayRef<int64_t> dilations) {
  SmallVector<WindowDim> dims;
  for (size_t d = 0, n = kernel.size(); d < n; ++d) {
    dims.push_back(
        {Shape(x)[d + 2].value(), Shape(y)[d + 2].value(), kernel[d], strides[d], dilations[d], pads[d], pads[d + n]});
  }
  return dims;
}

} // namespace tessera::kernels
