//===- RowReduction.h - Reductions over any run of dims ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Over the last dims a row is reduced inside its lane. Over other dims rows are taken one after another, which is also
// the order that sums of floats have there.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NPU_EMISSION_ROWREDUCTION_H
#define TESSERA_CODEGEN_NPU_EMISSION_ROWREDUCTION_H

#include "codegen/Npu/Tiler.h"
#include "llvm/ADT/SmallVector.h"

namespace tessera::npu {

/// Dims as three: before, of, and behind what is reduced.
struct ReducedExtent {
  int64_t outer = 1, size = 1, inner = 1;
};
/// Nothing where dims between the reduced ones stay.
std::optional<ReducedExtent> reducedExtent(llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> axes);

/// Where values lie: n, c and w stay, h is reduced; of the last dims w is.
struct RowsView {
  int64_t sizes[4], x[4], y[4], offset, resultOffset;
};
/// What lies behind the reduced dims is spread over lanes where that is more than before them. |byRows|: rows are
/// reduced inside.
llvm::SmallVector<RowsView> rowsViews(const ReducedExtent &extent, bool byRows, int64_t lanes);

/// y[n,c,0,w] = over h of x[n,c,h,w]. |y| is f32 where it is a sum.
void reduceRows(const TileView &y, const TileView &x, Reduction kind, Tile &tile);

/// |place| with one row for all of them.
TileView repeatedRow(TileView place);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_ROWREDUCTION_H
