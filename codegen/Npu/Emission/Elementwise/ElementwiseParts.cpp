//===- ElementwiseParts.cpp - Operands of element-wise ops ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/Elementwise/ElementwiseParts.h"

#include "codegen/Npu/Emission/Elementwise/WideIntegers.h"
#include "codegen/Npu/Emission/EmissionInterface.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::npu {
namespace {

/// Views values of [1, 1, rows, columns] with the rows over lanes, the layout of attention with one head.
SmallVector<View> rowViewsOf(ArrayRef<ArrayRef<int64_t>> shapes) {
  LoopNest nest = broadcastNest(shapes);
  SmallVector<View> views;
  for (const auto &strides : nest.strides) {
    views.push_back({{1, nest.sizes[2], 1, nest.sizes[3]}, {0, strides[2], 0, strides[3]}});
  }
  return views;
}

/// Views values as n, c, h, w of a tensor of four dims, as planes of a single volume, as rows over lanes of a tensor of
/// three dims, or as columns over lanes of a matrix. Returns nothing for other shapes.
std::optional<SmallVector<View>> viewsOf(ArrayRef<Value> values) {
  SmallVector<ArrayRef<int64_t>> shapes;
  bool isOfRows = false;
  for (Value value : values) {
    shapes.push_back(npu::typeOf(value).getShape());
    auto maker = dyn_cast_or_null<EmissionInterface>(value.getDefiningOp());
    isOfRows = isOfRows || (maker && maker.spreadsRows());
  }
  size_t rank = shapes[0].size();
  if (rank == 4 && isOfRows && shapes[0][0] == 1 && shapes[0][1] == 1) {
    return rowViewsOf(shapes);
  }
  LoopNest nest = broadcastNest(shapes);
  bool isOne = rank > 0 && shapes[0][0] == 1;
  if (rank != 2 && rank != 4 && (rank < 3 || rank > 5 || !isOne)) {
    return std::nullopt;
  }
  SmallVector<View> views(values.size(), View{{1, 1, 1, 1}, {0, 0, 0, 0}});
  constexpr int kColumns[] = {2, 1}, kRows[] = {0, 1, 3}, kImages[] = {0, 1, 2, 3}, kPlanes[] = {0, 1, 0, 2, 3};
  const int *dims = rank == 2 ? kColumns : rank == 3 ? kRows : rank == 4 ? kImages : kPlanes;
  for (size_t dim = rank % 2; dim < rank; ++dim) { // with an odd number of dims, the first is 1
    for (auto [view, strides] : llvm::zip(views, nest.strides)) {
      int to = dims[dim];
      view.sizes[to] = nest.sizes[dim], view.strides[to] = strides[dim];
    }
  }
  return views;
}

/// Returns true if computing over the channels in their existing layout costs less than the off-chip traffic that it
/// saves. Function arguments do not count, because they are loaded in any case.
bool paysOverChannels(ArrayRef<Value> values, const View &view, double cyclesEach, const Chip &chip) {
  double count = double(cast<RankedTensorType>(values[0].getType()).getNumElements()), bytes = 0;
  double lane = double(view.sizes[0] * view.sizes[2] * view.sizes[3] * llvm::divideCeil(view.sizes[1], chip.lanes));
  for (Value value : values) {
    if (isa<BlockArgument>(value)) {
      continue;
    }
    auto type = cast<RankedTensorType>(value.getType());
    bytes += double(type.getNumElements()) * type.getElementTypeBitWidth() / 8;
  }
  return (lane - count / chip.lanes) * cyclesEach * 4 / chip.vectorBytes < bytes / chip.ddrBytesPerCycle();
}

llvm::Expected<TileView> placeAny(Value value, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides, int64_t offset,
                                  EmissionContext &context) {
  return isWide(value) ? placeWide(value, sizes, strides, offset, context)
                       : context.operands.place(value, sizes, strides, offset);
}

/// Places the values with these views, as one part.
llvm::Expected<PlacedParts> placeWhole(ArrayRef<Value> values, ArrayRef<View> views, EmissionContext &context) {
  PlacedParts result(1);
  for (auto [value, view] : llvm::zip(values, views)) {
    llvm::Expected<TileView> placed = placeAny(value, view.sizes, view.strides, 0, context);
    if (!placed) {
      return placed.takeError();
    }
    result.back().push_back(*placed);
  }
  return result;
}

} // namespace

llvm::Expected<PlacedParts> placeParts(ArrayRef<Value> values, double cyclesEach, EmissionContext &context) {
  std::optional<SmallVector<View>> views = viewsOf(values);
  if (views && paysOverChannels(values, views->front(), cyclesEach, context.chip)) {
    bool isResident = context.surveys() || llvm::any_of(llvm::zip(values, *views), [&](auto both) {
                        return context.operands.isResident(std::get<0>(both), std::get<1>(both));
                      });
    if (isResident) {
      return placeWhole(values, *views, context);
    }
  }
  SmallVector<ArrayRef<int64_t>> shapes;
  for (Value value : values) {
    shapes.push_back(npu::typeOf(value).getShape());
  }
  LoopNest nest = broadcastNest(shapes).simplified();
  if (nest.sizes.empty()) {
    nest.sizes = {1};
    nest.strides.assign(values.size(), {1});
  }
  PlacedParts result;
  for (const Part &part : partsOf(nest, context.chip.lanes)) {
    result.emplace_back();
    for (auto [index, value] : llvm::enumerate(values)) {
      llvm::Expected<TileView> placed = placeAny(value, part.sizes, part.strides[index], part.offsets[index], context);
      if (!placed) {
        return placed.takeError();
      }
      result.back().push_back(*placed);
    }
  }
  return result;
}

} // namespace tessera::npu
