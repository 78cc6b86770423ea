//===- OperandIterator.cpp - Addresses of a contraction's operands --------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/OperandIterator.h"

#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/TensorTypes.h"

#include <numeric>

using namespace mlir;

namespace tessera::cuda {

OperandIterator::Place MatrixIterator::row(BlockBuilder &b, Value batch, Value row) const {
  Value offset = b.mul(row, rowBytes);
  int64_t inner = 1;
  for (auto [size, stride] : llvm::reverse(batches)) {
    if (stride) {
      offset = b.add(offset, b.mul(b.rem(b.div(batch, inner), size), stride));
    }
    inner *= size;
  }
  return {offset, {}, b.below(row, rows)};
}

OperandIterator::Place MatrixIterator::unit(BlockBuilder &b, Value unit) const {
  return {b.mul(unit, unitStride), {}, b.below(unit, units)};
}

WindowIterator::WindowIterator(BlockBuilder &b, Operation *op, Value group) : OperandIterator(kChunk, false) {
  auto conv = cast<device::ConvOp>(op);
  RankedTensorType x = typeOf(conv.getX()), y = typeOf(conv.getY());
  windows = kernels::windowDims(x, y, conv.getWeightShape().drop_front(2), conv.getStrides(), conv.getPads(),
                                conv.getDilations());
  int64_t bytes = device::elementBytes(x.getElementType()), positions = 1;
  rows = y.getDimSize(0);
  for (const kernels::WindowDim &dim : windows) {
    rows *= dim.output.value(), taps *= dim.kernel, positions *= dim.input.value();
  }
  device::BlockedAttr layout = device::getBlockedLayout(x);
  blocked = static_cast<bool>(layout);
  int64_t block = blocked ? layout.getBlock() : 1, blocks = llvm::divideCeil(x.getDimSize(1), block);
  int64_t channels = conv.getWeightShape()[1];
  if (!blocked) {
    bytesOfUnit = bytes, byRows = true;
  } else if (conv.getGroups() != 1) {
    bytesOfUnit = std::gcd(kChunk, channels * bytes);
  }
  positionBytes = block * bytes, blockBytes = positions * positionBytes, imageBytes = blocks * blockBytes;
  unitsOfBlock = positionBytes / bytesOfUnit, channelUnits = llvm::divideCeil(channels * bytes, bytesOfUnit);
  firstUnit = conv.getGroups() == 1 ? b.constant(0) : b.mul(group, channelUnits);
}

OperandIterator::Place WindowIterator::row(BlockBuilder &b, Value, Value row) const {
  Place place{b.constant(0), {}, b.below(row, rows)};
  Value rest = row;
  int64_t stride = positionBytes;
  for (const kernels::WindowDim &dim : llvm::reverse(windows)) {
    Value position = b.add(b.mul(b.rem(rest, dim.output.value()), dim.stride), -dim.padBegin);
    place.positions.insert(place.positions.begin(), position);
    place.offset = b.add(place.offset, b.mul(position, stride));
    rest = b.div(rest, dim.output.value()), stride *= dim.input.value();
  }
  place.offset = b.add(place.offset, b.mul(rest, imageBytes));
  return place;
}

/// Returns the offset of |kernelPosition| from the first kernel position.
OperandIterator::Place WindowIterator::tap(BlockBuilder &b, Value kernelPosition) const {
  Place place{b.constant(0), {}, nullptr};
  int64_t stride = positionBytes;
  for (const kernels::WindowDim &dim : llvm::reverse(windows)) {
    Value position = b.mul(b.rem(kernelPosition, dim.kernel), dim.dilation);
    place.positions.insert(place.positions.begin(), position);
    place.offset = b.add(place.offset, b.mul(position, stride));
    kernelPosition = b.div(kernelPosition, dim.kernel), stride *= dim.input.value();
  }
  return place;
}

OperandIterator::Place WindowIterator::unit(BlockBuilder &b, Value unit) const {
  if (!blocked) { // (channel, kernel position)
    Place place = tap(b, b.rem(unit, taps));
    place.offset = b.add(place.offset, b.mul(b.add(b.div(unit, taps), firstUnit), blockBytes));
    place.valid = b.below(unit, channelUnits * taps);
    return place;
  }
  Value channel = b.add(b.rem(unit, channelUnits), firstUnit);
  Place place = tap(b, b.div(unit, channelUnits));
  Value within =
      b.add(b.mul(b.div(channel, unitsOfBlock), blockBytes), b.mul(b.rem(channel, unitsOfBlock), bytesOfUnit));
  place.offset = b.add(place.offset, within);
  place.valid = b.below(unit, channelUnits * taps);
  return place;
}

Value WindowIterator::isInside(BlockBuilder &b, const Place &row, const Place &unit) const {
  Value inside;
  for (auto [i, dim] : llvm::enumerate(windows)) {
    if (!dim.isAllInterior()) {
      inside = b.both(inside, b.below(b.add(row.positions[i], unit.positions[i]), dim.input.value()));
    }
  }
  return inside;
}

} // namespace tessera::cuda
