//===- EmitResize.cpp - Enlarging by whole factors on the NPU -------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emitter.h"
#include "codegen/Npu/Product.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
namespace {

/// How often a table of source indices repeats each, if it does so for all; 0: it does not.
uint32_t factorOf(llvm::ArrayRef<int32_t> indices, int64_t size) {
  int64_t factor = int64_t(indices.size()) / size;
  for (auto [at, index] : llvm::enumerate(indices)) {
    if (factor == 0 || index != int64_t(at) / factor) {
      return 0;
    }
  }
  return int64_t(indices.size()) == factor * size ? uint32_t(factor) : 0;
}

/// Every |factor|-th element along a dim, from |first| on.
Place everyOther(Place place, unsigned dim, uint32_t factor, uint32_t first) {
  place.tensor.offset += int64_t(first) * place.tensor.strides[dim];
  place.tensor.strides[dim] *= int32_t(factor);
  place.shape.dims[dim] /= factor;
  return place;
}

} // namespace

/// Nearest by whole factors: each repetition is a map that leaves elements as they are, onto its places of the result.
llvm::Error Emitter::emitResize(device::ResizeOp op) {
  auto xType = cast<RankedTensorType>(op.getX().getType()), yType = cast<RankedTensorType>(op.getY().getType());
  uint32_t factors[4] = {1, 1, 1, 1};
  for (auto [i, axis] : llvm::enumerate(op.getAxes())) {
    Value table = op.getTables()[2 * i];
    llvm::Expected<std::vector<int32_t>> indices = constantValues<int32_t>(table, "a table of indices");
    if (!indices) {
      return indices.takeError();
    }
    bool oneTap = cast<RankedTensorType>(table.getType()).getDimSize(1) == 1;
    uint32_t factor = oneTap && axis >= 2 ? factorOf(*indices, xType.getDimSize(axis)) : 0;
    if (xType.getRank() != 4 || factor == 0) {
      return refuse("resizes other than rows and columns by whole factors to the nearest, which is not emitted yet");
    }
    factors[axis] = factor;
  }
  auto dense = [](ArrayRef<int64_t> s) { return SmallVector<int64_t>{s[1] * s[2] * s[3], s[2] * s[3], s[3], 1}; };
  llvm::Expected<Place> x = place(op.getX(), xType.getShape(), dense(xType.getShape()));
  llvm::Expected<Place> y = place(op.getY(), yType.getShape(), dense(yType.getShape()));
  if (!x || !y) {
    return llvm::joinErrors(x.takeError(), y.takeError());
  }
  const Instructions same = {{hw::Op::maximum, 4, 0, 0, 0}};
  auto build = [&](const Shape &begin, const Shape &size, Area &area, Tile &tile) {
    Place from = *x, to = *y;
    for (unsigned dim = 0; dim < 4; ++dim) {
      from = slice(from, dim, begin.dims[dim] / factors[dim], size.dims[dim] / factors[dim], chip);
      to = slice(to, dim, begin.dims[dim], size.dims[dim], chip);
    }
    Place local = load(from, area, tile), result = area.allocate(to.shape, to.tensor.type);
    for (uint32_t row = 0; row < factors[2]; ++row) {
      for (uint32_t column = 0; column < factors[3]; ++column) {
        Place part = everyOther(everyOther(result, 2, factors[2], row), 3, factors[3], column);
        compute(stream, same, part, local, tile);
      }
    }
    store(result, to, tile);
    return !area.isFull();
  };
  return appendTiles(stream, y->shape, Shape{{1, chip.lanes, factors[2], 0}}, 0, build);
}

} // namespace tessera::npu
