//===- WarpProduct.h - What a warp multiplies -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_WARPPRODUCT_H
#define TESSERA_CODEGEN_CUDA_WARPPRODUCT_H

#include "codegen/Cuda/IR/CudaDialect.h"
#include "codegen/Cuda/TileLoader.h"
#include "codegen/Cuda/TiledProduct.h"

namespace tessera::cuda {

inline constexpr int64_t kFragmentRows = 16, kFragmentColumns = 8; ///< of one mma

/// The sums of a warp, dealt to its threads as mma's are, whoever computes them.
struct WarpTile {
  WarpTile(TileAttr tile, const TiledProduct &product);

  int64_t fragmentsM, fragmentsN;
  /// Of these the first ones, which have sums: where a warp has all rows or columns, the others are beyond the last.
  int64_t usedM, usedN;

  /// |count| fragments from |first| on whose columns are dealt so that a thread's are neighbours: column c of fragment
  /// j of them is column (c / 2) * 2 count + 2 j + c % 2 of the result's.
  struct Group {
    int64_t first, count;
  };
  llvm::SmallVector<Group> groups; ///< of all fragments; one has either used ones or others

  /// The result's column, from the first one of the tile, that stands in row |row| (i32) of the right side's tile.
  mlir::Value columnAt(BlockBuilder &b, mlir::Value row) const;

  /// Thread 4 g + t has row g + 8 (i / 2) and column 2 t + i % 2 of fragment (m, n) as sum i of four.
  int64_t sumIndex(int64_t m, int64_t n, int64_t i) const { return (m * usedN + n) * 4 + i; }
  int64_t sumCount() const { return usedM * usedN * 4; }
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
  static std::unique_ptr<WarpProduct> create(BlockBuilder &b, TileAttr tile, const WarpTile &warp, const WarpPlace &at,
                                             SharedTile tileA, SharedTile tileB, mlir::Type elementA,
                                             mlir::Type elementB);
  virtual ~WarpProduct() = default;

  /// |sums| and the products of the stage at |base|, of which |bytes| of K hold something. A warp does nothing for the
  /// rest of them.
  llvm::SmallVector<Value> multiply(Value base, mlir::ValueRange sums, int64_t bytes);

protected:
  using Values = llvm::SmallVector<Value>;

  /// |unitBytes|: of K, that a warp multiplies at once.
  WarpProduct(BlockBuilder &b, TileAttr tile, const WarpTile &warp, const WarpPlace &at, int64_t unitBytes)
      : b(b), tile(tile), warp(warp), at(at), unitBytes(unitBytes) {}

  /// |sums| and the products of this warp's unit |unit| of a stage, of its first |bytes|: all, or kChunk.
  virtual Values addUnit(Value base, int64_t unit, mlir::ValueRange sums, int64_t bytes) = 0;
  /// Units of a step that a warp has.
  int64_t units() const { return tile.getKBytes() / tile.getWarpK() / unitBytes; }

  BlockBuilder &b;
  TileAttr tile;
  WarpTile warp;
  WarpPlace at;
  int64_t unitBytes;
};

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_WARPPRODUCT_H
