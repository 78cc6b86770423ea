//===- RowReduction.cpp - Reductions over any run of dims -----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/Rows/RowReduction.h"

#include "llvm/ADT/STLExtras.h"

using llvm::ArrayRef;
using llvm::SmallVector;
namespace hw = bmodel::npu;

namespace tessera::npu {

std::optional<ReducedExtent> reducedExtent(ArrayRef<int64_t> dims, ArrayRef<int64_t> axes) {
  ReducedExtent result;
  for (auto [dim, size] : llvm::enumerate(dims)) {
    bool isReduced = llvm::is_contained(axes, int64_t(dim));
    if (isReduced && result.inner != 1 && size != 1) {
      return std::nullopt;
    }
    (isReduced ? result.size : result.size == 1 ? result.outer : result.inner) *= size;
  }
  return result;
}

SmallVector<RowsView> rowsViews(const ReducedExtent &extent, bool byRows, int64_t lanes) {
  auto [outer, size, inner] = extent;
  if (byRows) {
    return {{{1, outer, 1, size}, {0, size, 0, 1}, {0, 1, 0, 0}, 0, 0}};
  }
  if (outer >= lanes || outer >= inner) {
    return {{{1, outer, size, inner}, {0, size * inner, inner, 1}, {0, inner, 0, 1}, 0, 0}};
  }
  SmallVector<RowsView> views;
  int64_t columns = inner / lanes, rest = inner % lanes;
  if (columns) {
    views.push_back({{outer, lanes, size, columns}, {size * inner, columns, inner, 1}, {inner, columns, 0, 1}, 0, 0});
  }
  if (rest) {
    int64_t at = columns * lanes;
    views.push_back({{outer, rest, size, 1}, {size * inner, 1, inner, 1}, {inner, 1, 0, 1}, at, at});
  }
  return views;
}

/// Returns a view with rows and columns swapped.
static TileView turned(TileView place) {
  std::swap(place.shape.dims[2], place.shape.dims[3]);
  std::swap(place.tensor.strides[2], place.tensor.strides[3]);
  return place;
}

void reduceRows(const TileView &y, const TileView &x, Reduction kind, Tile &tile) {
  if (kind != Reduction::sum) {
    TileView to = turned(y);
    reduce(to, turned(x), kind, tile);
    return;
  }
  hw::dot_command command;
  command.y = y.tensor, command.b = x.tensor, command.shape = y.shape, command.steps = x.dim(2);
  tile.computes.push_back(hw::encode(command));
}

TileView repeatedRow(TileView place) {
  place.tensor.strides[2] = 0;
  return place;
}

} // namespace tessera::npu
