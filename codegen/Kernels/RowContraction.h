//===- RowContraction.h - Contractions of rows by rows ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_ROWCONTRACTION_H
#define TESSERA_CODEGEN_KERNELS_ROWCONTRACTION_H

#include "codegen/Kernels/KernelBuilder.h"

namespace tessera::kernels {

/// A tile of a contraction whose operands are both contiguous along the common dim.
struct RowTile {
  int64_t depth; ///< size of the common dim
  unsigned lanes;
  int64_t left;  ///< rows of the left operand
  int64_t right; ///< rows of the right operand, a power of two, at most |lanes|
};

/// Loads a vector of row |row| from element |i| on. |mask| is null or selects the lanes that exist; the contents of the
/// other lanes do not matter.
using RowVectorFn = llvm::function_ref<mlir::Value(int64_t row, mlir::Value i, mlir::Value mask)>;

/// Returns, for each left row, the vector of its dot products with the right rows. The order of each sum does not
/// depend on the other rows of the tile.
llvm::SmallVector<mlir::Value> emitRowContraction(KernelBuilder &kb, mlir::Type element, const RowTile &tile,
                                                  RowVectorFn left, RowVectorFn right);

/// Returns the number of right rows for a tile: the largest legal one up to |count| and |most|.
int64_t rightRows(int64_t count, unsigned lanes, int64_t most);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_ROWCONTRACTION_H
