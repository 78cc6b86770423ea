//===- Attention.h - Attention as tiles of the NPU --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_ATTENTION_H
#define TESSERA_CODEGEN_NPU_ATTENTION_H

#include "codegen/Npu/IR/NpuDialect.h"
#include "codegen/Npu/Tiler.h"
#include "llvm/ADT/SmallVector.h"

namespace tessera::npu {

/// Batches of queries, |group| of which have the same keys.
struct AttentionSizes {
  int64_t batches, queries, depth, keys, features, group = 1;
  bool hasMask;
  int64_t runs = 0; ///< of batches whose operands lie evenly; 0: all do
  bool ofIntegers = false;
  bool zeroesMaskedRows = false; ///< a row whose scores are all -inf is 0
};

/// What scores and results are multiplied by.
struct AttentionScales {
  float scores, values = 1;
  float levels = 0; ///< of powers, where products are of integers
};

/// Into how many blocks the queries of a batch are cut such that lanes have about as much to do.
int64_t blocksOf(const AttentionSizes &sizes, const Chip &chip);
/// The fastest way where queries are not few.
AttentionWay chooseWay(const AttentionSizes &sizes, int64_t blocks, const Chip &chip);

/// Makes the tiles of one attention.
class AttentionTiles {
public:
  AttentionTiles(const AttentionSizes &sizes, AttentionWay way, uint32_t blocks, Tiler &tiler,
                 const AttentionScales &scales)
      : sizes(sizes), byMatrix(way == AttentionWay::matrix), byBatch(way == AttentionWay::batches),
        blocks(way == AttentionWay::blocks ? blocks : 0), scales(scales), stream(tiler.stream), chip(stream.chip),
        budget(tiler.budget), overlaps(tiler.overlaps) {
    scaled = {{bmodel::npu::Op::constant, 4, 0, 0, llvm::bit_cast<uint32_t>(scales.scores)},
              {bmodel::npu::Op::mul, 4, 0, 4, 0}};
    if (sizes.hasMask) {
      scaled.push_back({bmodel::npu::Op::add, 4, 4, 1, 0});
    }
  }

  // n, c, h: batches, queries, those of a group; or 1, batches, all queries of a group; or 1, blocks of all batches,
  // queries of a block. Keys are [depth, keys]. One place for all n, or one for each; of blocks one for each batch.
  // Heads side by side have one h each, and keys and values one place each.
  llvm::SmallVector<TileView> q, y, keys, values, masks;
  bool sideBySide = false;
  Shape whole;               ///< n, c, h of all
  Instructions mapped;       ///< what is computed of the result, or nothing
  size_t mappedOperands = 1; ///< how many of its operands are the result: all

  /// How large a tile is and how many keys a chunk has; false where nothing fits.
  bool choose();
  std::vector<Tile> make();
  /// Bytes of a lane: of what was chosen, and below which work gets slow.
  uint64_t requirement() const { return requirementOf(size, chunk); }
  uint64_t minimum() const;

private:
  /// Whether sums, which are f32, are no result.
  bool sumsAreApart() const { return !mapped.empty() || y[0].tensor.type != bmodel::npu::Type::f32; }
  uint64_t requirementOf(const Shape &tile, uint32_t chunk) const;
  bool shrink();
  void makeTile(const Shape &begin, const Shape &part);
  TileView partOf(llvm::ArrayRef<TileView> of, const Shape &begin, const Shape &part, bool hasRows) const;
  TileView loadChunk(llvm::ArrayRef<TileView> of, const Shape &begin, const Shape &part, unsigned dim, uint32_t key,
                     uint32_t count, Tile &tile);

  TileView loadChunkOfBlocks(llvm::ArrayRef<TileView> of, const Shape &begin, const Shape &part, unsigned dim,
                             uint32_t key, uint32_t count, Tile &tile);
  TileView blockOf(llvm::ArrayRef<TileView> of, const Shape &begin, const Shape &part, uint32_t row) const;
  void moveBlocks(llvm::ArrayRef<TileView> of, const Shape &begin, const Shape &part, const TileView &local,
                  bool stores, Tile &tile) const;
  TileView loadQueries(const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile);
  void finish(const TileView &result, const TileView &total, const Shape &begin, const Shape &part,
              LocalBudget &localBudget, Tile &tile);
  TileView loadMaskOfBlocks(const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile);

  llvm::SmallVector<TileView> loadRows(llvm::ArrayRef<TileView> of, const Shape &begin, const Shape &part,
                                       LocalBudget &localBudget, Tile &tile);
  void makeIntegerTile(const Shape &begin, const Shape &part);
  void multiplyAll(const TileView &y, const TileView &a, llvm::ArrayRef<TileView> b, float factor, Tile &tile,
                   const TileView *added = nullptr);
  void reduceScores(const TileView &best, const TileView &scores, Tile &tile);
  void divide(const TileView &total, float dividend, Tile &tile);
  void addPowers(const TileView &scores, const TileView &best, const TileView &total, Tile &tile);
  void loadMask(const TileView &scores, const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile);

  const AttentionSizes &sizes;
  bool byMatrix, byBatch;
  uint32_t blocks; ///< of a batch; 0: lanes have something else
  AttentionScales scales;
  Stream &stream;
  const Chip &chip;
  uint64_t budget;
  bool overlaps;
  Instructions scaled;
  Shape size;
  uint32_t chunk = 0;
  uint16_t lane = 0;
  std::optional<TileView> mask; ///< of the tile, where the next one may have the same
  Shape maskBegin, maskPart;    ///< of that tile
  std::vector<Tile> tiles;
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_ATTENTION_H
