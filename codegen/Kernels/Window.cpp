//===- Window.cpp - Sliding windows of convolutions and pools -------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/Window.h"

#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::kernels {

std::pair<Value, Value> WindowDim::tapsBelow(KernelBuilder &kb, Value position, Dim low, Dim high) const {
  // Taps t with low <= start + t * dilation < high.
  Value start = kb.sub(kb.mul(position, stride), kb.constant(padBegin));
  auto ceilTaps = [&](Dim bound) {
    // max(0, ceil((bound - start) / dilation)); the dividend is made non-negative first.
    Value distance = kb.max(kb.sub(kb.index(bound), start), kb.constant(0));
    return kb.min(kb.div(kb.add(distance, dilation - 1), dilation), kb.constant(kernel));
  };
  return {ceilTaps(low), ceilTaps(high)};
}

std::pair<Value, Value> WindowDim::validTaps(KernelBuilder &kb, Value position) const {
  if (isAllInterior()) {
    return {kb.constant(0), kb.constant(kernel)};
  }
  return tapsBelow(kb, position, 0, input);
}

Value WindowDim::paddedTaps(KernelBuilder &kb, Value position) const {
  auto [first, last] = tapsBelow(kb, position, -padBegin, input + padEnd);
  return kb.sub(last, first);
}

std::pair<Dim, Dim> WindowDim::interior() const {
  int64_t reach = (kernel - 1) * dilation;
  Dim first = min(output, int64_t(llvm::divideCeil(padBegin, stride)));
  Dim room = input - 1 - reach + padBegin; // largest start of a window that fits, plus padBegin
  return {first, min(output, max(first, floorDiv(room, stride) + 1))};
}

bool WindowDim::isAllInterior() const {
  auto [first, last] = interior();
  return first.is(0) && sameSize(last, output);
}

Value WindowDim::inputAt(KernelBuilder &kb, Value position, Value tap) const {
  return kb.sub(kb.add(kb.mul(position, stride), kb.mul(tap, dilation)), kb.constant(padBegin));
}

Value narrowIndex(KernelBuilder &kb, Dim size) {
  if (size.isKnown()) {
    return arith::ConstantOp::create(kb.b, kb.b.getI32IntegerAttr(size.value()));
  }
  return arith::TruncIOp::create(kb.b, kb.b.getI32Type(), kb.index(size));
}

SmallVector<WindowDim> windowDims(RankedTensorType x, RankedTensorType y, ArrayRef<int64_t> kernel,
                                  ArrayRef<int64_t> strides, ArrayRef<int64_t> pads, ArrayRef<int64_t> dilations) {
  SmallVector<WindowDim> dims;
  for (size_t d = 0, n = kernel.size(); d < n; ++d) {
    dims.push_back({Shape(x)[d + 2], Shape(y)[d + 2], kernel[d], strides[d], dilations[d], pads[d], pads[d + n]});
  }
  return dims;
}

} // namespace tessera::kernels
