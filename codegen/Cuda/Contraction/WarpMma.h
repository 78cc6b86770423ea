//===- WarpMma.h - The multiplications of a warp ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_CONTRACTION_WARPMMA_H
#define TESSERA_CODEGEN_CUDA_CONTRACTION_WARPMMA_H

#include "codegen/Cuda/Contraction/TileLoader.h"
#include "codegen/Cuda/Contraction/TiledContraction.h"
#include "codegen/Cuda/IR/CudaDialect.h"

namespace tessera::cuda {

inline constexpr int64_t kFragmentRows = 16, kFragmentColumns = 8; ///< size of one mma's sums

/// The sums of a warp, distributed to its threads as by mma, for tensor cores and cores alike.
struct WarpTile {
  WarpTile(TileAttr tile, const TiledContraction &contraction);

  int64_t fragmentsM, fragmentsN;
  /// Number of leading fragments that have sums. If a warp has all rows or columns, further fragments are beyond the
  /// last row or column.
  int64_t usedM, usedN;

  /// |count| fragments from |first| on whose columns are distributed so that a thread's columns are contiguous: column
  /// c of the group's fragment j is column (c / 2) * 2 count + 2 j + c % 2 of the result.
  struct Group {
    int64_t first, count;
  };
  llvm::SmallVector<Group> groups; ///< groups of all fragments; used and unused ones are not mixed in a group

  /// Returns the result's column, relative to the first one of the tile, in row |row| (i32) of the right side's tile.
  mlir::Value columnAt(BlockBuilder &b, mlir::Value row) const;

  /// Returns the index of sum i of fragment (m, n). Thread 4 g + t has row g + 8 (i / 2) and column 2 t + i % 2 of it.
  int64_t sumIndex(int64_t m, int64_t n, int64_t i) const { return (m * usedN + n) * 4 + i; }
  int64_t sumCount() const { return usedM * usedN * 4; }
};

/// The index of a thread in its warp, and of the warp in its block (i32).
struct WarpPlace {
  WarpPlace() = default;
  WarpPlace(BlockBuilder &b, TileAttr tile);

  mlir::Value lane, row, column, k;
};

/// Multiplies steps of K in shared memory.
class WarpMma {
public:
  using Value = mlir::Value;

  /// Creates the variant for elements |elementA| and |elementB|. A stage of shared memory holds |tileA| and then
  /// |tileB|.
  static std::unique_ptr<WarpMma> create(BlockBuilder &b, TileAttr tile, const WarpTile &warp, const WarpPlace &at,
                                         SharedTile tileA, SharedTile tileB, mlir::Type elementA, mlir::Type elementB);
  virtual ~WarpMma() = default;

  /// Adds the products of the stage at |base|, which has |bytes| of K, to |sums|. A warp skips units beyond |bytes|.
  llvm::SmallVector<Value> multiply(Value base, mlir::ValueRange sums, int64_t bytes);

protected:
  using Values = llvm::SmallVector<Value>;

  /// |unitBytes|: bytes of K that a warp multiplies at once.
  WarpMma(BlockBuilder &b, TileAttr tile, const WarpTile &warp, const WarpPlace &at, int64_t unitBytes)
      : b(b), tile(tile), warp(warp), at(at), unitBytes(unitBytes) {}

  /// Adds the products of this warp's unit |unit| of a stage to |sums|: its first |bytes|, which are all or kChunk.
  virtual Values addUnit(Value base, int64_t unit, mlir::ValueRange sums, int64_t bytes) = 0;
  /// Returns the number of units of a step that a warp has.
  int64_t units() const { return tile.getKBytes() / tile.getWarpK() / unitBytes; }

  BlockBuilder &b;
  TileAttr tile;
  WarpTile warp;
  WarpPlace at;
  int64_t unitBytes;
};

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_CONTRACTION_WARPMMA_H
