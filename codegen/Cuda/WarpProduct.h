//===- WarpProduct.h - What a warp multiplies -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_WARPPRODUCT_H
#define TESSERA_CODEGEN_CUDA_WARPPRODUCT_H

#include "codegen/Cuda/IR/CudaDialect.h"
#include "codegen/Cuda/TileLoader.h"

namespace tessera::cuda {

inline constexpr int64_t kFragmentRows = 16, kFragmentColumns = 8; ///< of one mma

/// The sums of a warp, dealt to its threads as mma's are, whoever computes them.
struct WarpTile {
  explicit WarpTile(TileAttr tile)
      : fragmentsM(tile.getRows() / tile.getWarpRows() / kFragmentRows),
        fragmentsN(tile.getColumns() / tile.getWarpColumns() / kFragmentColumns) {}

  int64_t fragmentsM, fragmentsN;
  /// Thread 4 g + t has row g + 8 (i / 2) and column 2 t + i % 2 of fragment (m, n) as sum i of four.
  int64_t sumIndex(int64_t m, int64_t n, int64_t i) const { return (m * fragmentsN + n) * 4 + i; }
  int64_t sumCount() const { return fragmentsM * fragmentsN * 4; }
};

/// The thread in its warp, and the warp among those of its block (i32).
struct WarpPlace {
  WarpPlace() = default;
  WarpPlace(BlockBuilder &b, TileAttr tile);

  mlir::Value lane, row, column, k;
};

/// Multiplies a step of K in shared memory.
class WarpProduct {
public:
  using Value = mlir::Value;

  /// Elements |elementA| and |elementB|. A stage of shared memory holds |tileA|, and |tileB| behind it.
  static std::unique_ptr<WarpProduct> create(BlockBuilder &b, TileAttr tile, const WarpPlace &at, SharedTile tileA,
                                             SharedTile tileB, mlir::Type elementA, mlir::Type elementB);
  virtual ~WarpProduct() = default;

  /// |sums| and the products of the stage at |base|.
  virtual llvm::SmallVector<Value> multiply(Value base, mlir::ValueRange sums) = 0;

protected:
  WarpProduct(BlockBuilder &b, TileAttr tile) : b(b), tile(tile), warp(tile) {}

  BlockBuilder &b;
  TileAttr tile;
  WarpTile warp;
};

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_WARPPRODUCT_H
