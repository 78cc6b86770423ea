//===- OperandIterator.cpp - Addresses of a contraction's operands --------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/Contraction/OperandIterator.h"

#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/TensorTypes.h"

#include <numeric>

using namespace mlir;

namespace tessera::cuda {

OperandIterator::Place MatrixIterator::row(BlockBuilder &b, Value batch, Value row) const {
  Value offset = b.mul(row, rowBytes);
  Dim inner = 1;
  for (auto [size, stride] : llvm::reverse(batches)) {
    if (!stride.is(0)) {
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
  int64_t bytes = device::elementBytes(x.getElementType());
  Dim positions = 1;
  rows = Shape(y)[0];
  for (const kernels::WindowDim &dim : windows) {
    rows *= dim.output, taps *= dim.kernel, positions *= dim.input;
  }
  device::BlockedAttr layout = device::getBlockedLayout(x);
  blocked = static_cast<bool>(layout);
  int64_t block = blocked ? layout.getBlock() : 1, blocks = llvm::divideCeil(Shape(x)[1].value(), block);
  int64_t channels = conv.getWeightShape()[1];
  if (!blocked) {
    bytesOfUnit = bytes, byRows = true;
  } else if (conv.getGroups() != 1) {
    bytesOfUnit = std::gcd(kChunk, channels * bytes);
  }
  positionBytes = block * bytes, blockBytes = positions * positionBytes, imageBytes = blockBytes * blocks;
  unitsOfBlock = positionBytes / bytesOfUnit, channelUnits = llvm::divideCeil(channels * bytes, bytesOfUnit);
  firstUnit = conv.getGroups() == 1 ? b.constant(0) : b.mul(group, channelUnits);
}

OperandIterator::Place WindowIterator::row(BlockBuilder &b, Value, Value row) const {
  Place place{b.constant(0), {}, b.below(row, rows)};
  Value rest = row;
  Dim stride = positionBytes;
  for (const kernels::WindowDim &dim : llvm::reverse(windows)) {
    Value position = b.add(b.mul(b.rem(rest, dim.output), dim.stride), -dim.padBegin);
    place.positions.insert(place.positions.begin(), position);
    place.offset = b.add(place.offset, b.mul(position, stride));
    rest = b.div(rest, dim.output), stride *= dim.input;
  }
  place.offset = b.add(place.offset, b.mul(rest, imageBytes));
  return place;
}

/// Returns the offset of |kernelPosition| from the first kernel position.
OperandIterator::Place WindowIterator::tap(BlockBuilder &b, Value kernelPosition) const {
  Place place{b.constant(0), {}, nullptr};
  Dim stride = positionBytes;
  for (const kernels::WindowDim &dim : llvm::reverse(windows)) {
    Value position = b.mul(b.rem(kernelPosition, dim.kernel), dim.dilation);
    place.positions.insert(place.positions.begin(), position);
    place.offset = b.add(place.offset, b.mul(position, stride));
    kernelPosition = b.div(kernelPosition, dim.kernel), stride *= dim.input;
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
      inside = b.both(inside, b.below(b.add(row.positions[i], unit.positions[i]), dim.input));
    }
  }
  return inside;
}

} // namespace tessera::cuda
