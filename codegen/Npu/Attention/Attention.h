//===- Attention.h - Attention on the NPU, cut into tiles -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_ATTENTION_ATTENTION_H
#define TESSERA_CODEGEN_NPU_ATTENTION_ATTENTION_H

#include "codegen/Npu/Contraction/Tiler.h"
#include "codegen/Npu/IR/NpuDialect.h"
#include "llvm/ADT/SmallVector.h"

namespace tessera::npu {

/// Sizes of an attention. Each |group| consecutive batches share their keys and values.
struct AttentionSizes {
  int64_t batches, queries, depth, keys, features, group = 1;
  bool hasMask;
  int64_t runs = 0; ///< runs of evenly spaced batches, if those of q or y are not evenly spaced; else 0
  bool ofIntegers = false;
  bool zeroesMaskedRows = false; ///< a row whose scores are all -inf gives 0
};

/// Factors of scores and results.
struct AttentionScales {
  float scores, values = 1;
  float levels = 0; ///< factor of powers before they are rounded to u8; integer attention only
};

/// Returns the number of blocks into which the queries of each batch are cut, such that all lanes have similar work.
int64_t blocksOf(const AttentionSizes &sizes, const Chip &chip);
/// Returns the fastest mapping among `queries`, `matrix` and `blocks`. `batches`, for few queries, is chosen by the
/// caller.
AttentionMapping chooseMapping(const AttentionSizes &sizes, int64_t blocks, const Chip &chip);

/// Builds the tiles of one attention.
class AttentionTiles {
public:
  AttentionTiles(const AttentionSizes &sizes, AttentionMapping mapping, uint32_t blocks, Tiler &tiler,
                 const AttentionScales &scales)
      : sizes(sizes), byMatrix(mapping == AttentionMapping::matrix), byBatch(mapping == AttentionMapping::batches),
        blocks(mapping == AttentionMapping::blocks ? blocks : 0), scales(scales), stream(tiler.stream),
        chip(stream.chip), budget(tiler.budget), overlaps(tiler.overlaps) {
    scaled = {{bmodel::npu::Op::constant, 4, 0, 0, llvm::bit_cast<uint32_t>(scales.scores)},
              {bmodel::npu::Op::mul, 4, 0, 4, 0}};
    if (sizes.hasMask) {
      scaled.push_back({bmodel::npu::Op::add, 4, 4, 1, 0});
    }
  }

  // The dims n, c, h depend on the mapping:
  //   queries, matrix: groups of batches that share keys; queries; batches of a group
  //   batches: 1; groups; queries of all batches of a group
  //   blocks: 1; blocks of all batches; queries of a block
  // Keys are [depth, keys] and values [keys, features] in h, w. An operand has either one view for all n or one per n,
  // with `blocks` one per batch. If |sideBySide|, each head is one h, and keys and values have one view per head.
  llvm::SmallVector<TileView> q, y, keys, values, masks;
  bool sideBySide = false;
  Shape whole;               ///< n, c, h of the complete attention
  Instructions mapped;       ///< map computed on the result; may be empty
  size_t mappedOperands = 1; ///< operands of |mapped|, all of which are the result

  /// Chooses the tile size and the keys per block. Returns false if not even the smallest tile fits.
  bool choose();
  std::vector<Tile> make();
  /// Bytes per lane: for the chosen tile size, and for the smallest one that is still fast.
  uint64_t requirement() const { return requirementOf(size, keyBlock); }
  uint64_t minimum() const;

private:
  /// Returns true if the f32 sums need their own buffer, because the result is mapped or not f32.
  bool sumsAreApart() const { return !mapped.empty() || y[0].tensor.type != bmodel::npu::Type::f32; }
  uint64_t requirementOf(const Shape &tile, uint32_t keyBlock) const;
  bool shrink();
  void makeTile(const Shape &begin, const Shape &part);
  TileView partOf(llvm::ArrayRef<TileView> of, const Shape &begin, const Shape &part, bool hasRows) const;
  TileView loadKeyBlock(llvm::ArrayRef<TileView> of, const Shape &begin, const Shape &part, unsigned dim, uint32_t key,
                        uint32_t count, Tile &tile);

  TileView loadKeyBlockOfBlocks(llvm::ArrayRef<TileView> of, const Shape &begin, const Shape &part, unsigned dim,
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
  uint32_t blocks; ///< blocks per batch; 0 with other mappings
  AttentionScales scales;
  CommandStream &stream;
  const Chip &chip;
  uint64_t budget;
  bool overlaps;
  Instructions scaled;
  Shape size;
  uint32_t keyBlock = 0;
  uint16_t lane = 0;
  std::optional<TileView> mask; ///< mask of the current tile; the next tile may reuse it
  Shape maskBegin, maskPart;    ///< position and size of the tile that |mask| was loaded for
  std::vector<Tile> tiles;
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_ATTENTION_ATTENTION_H
