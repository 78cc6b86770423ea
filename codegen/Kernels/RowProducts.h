//===- RowProducts.h - Some rows times some rows -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_ROWPRODUCTS_H
#define TESSERA_CODEGEN_KERNELS_ROWPRODUCTS_H

#include "codegen/Kernels/KernelBuilder.h"

namespace tessera::kernels {

/// A tile of a product whose factors both have their common dim in vectors of |lanes|.
struct RowTile {
  int64_t depth; ///< of the common dim
  unsigned lanes;
  int64_t left;  ///< rows of the left factor
  int64_t right; ///< of the right one, a power of two, at most |lanes|
};

/// A vector of a row from element |i| on; |mask| is null or tells the lanes that exist, and what others hold does not
/// matter.
using RowVectorFn = llvm::function_ref<mlir::Value(int64_t row, mlir::Value i, mlir::Value mask)>;

/// Of each left row the vector of its products with the right rows. Each product is summed in the same order whatever
/// else is in the tile.
llvm::SmallVector<mlir::Value> emitRowProducts(KernelBuilder &kb, mlir::Type element, const RowTile &tile,
                                               RowVectorFn left, RowVectorFn right);

/// The largest number of right rows for |count| of them, at most |most|.
int64_t rightRows(int64_t count, unsigned lanes, int64_t most);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_ROWPRODUCTS_H
