//===- RowReduction.h - Reductions over any run of dims ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// A reduction over the last dims reduces each row inside its lane. A reduction over other dims combines whole rows one
// after another, which is also the specified order of float sums.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NPU_EMISSION_ROWS_ROWREDUCTION_H
#define TESSERA_CODEGEN_NPU_EMISSION_ROWS_ROWREDUCTION_H

#include "codegen/Npu/Contraction/Tiler.h"
#include "llvm/ADT/SmallVector.h"

namespace tessera::npu {

/// Dims combined into three: those before the reduced ones, the reduced ones, and those behind.
struct ReducedExtent {
  int64_t outer = 1, size = 1, inner = 1;
};
/// Returns nothing if there are dims larger than 1 between the reduced ones.
std::optional<ReducedExtent> reducedExtent(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> axes);

/// Views of operand and result of a reduction. Dim h is reduced, or w if the last dims are reduced; the other dims
/// remain.
struct RowsView {
  int64_t sizes[4], x[4], y[4], offset, resultOffset;
};
/// Returns the views of a reduction. Spreads the dims behind the reduced ones over the lanes if these are more than the
/// dims before. |byRows|: rows are reduced inside their lanes.
llvm::SmallVector<RowsView> rowsViews(const ReducedExtent &extent, bool byRows, int64_t lanes);

/// Appends y[n,c,0,w] = reduction over h of x[n,c,h,w]. |y| is f32 for sums.
void reduceRows(const TileView &y, const TileView &x, Reduction kind, Tile &tile);

/// Returns |place| with one row broadcast along h.
TileView repeatedRow(TileView place);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_ROWS_ROWREDUCTION_H
