//===- QuantizedRows.h - Rows of a block matmul as integers -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_CONTRACTION_QUANTIZEDROWS_H
#define TESSERA_CODEGEN_NPU_EMISSION_CONTRACTION_QUANTIZEDROWS_H

#include "codegen/Npu/Contraction/Tiler.h"

#include "llvm/Support/MathExtras.h"

namespace tessera::npu {

/// Sizes of a block matmul. All leading dims of the left operand are rows.
struct BlockSizes {
  int64_t rows, depth, columns;
  int64_t block; ///< entries per block, at most |depth|
  bool hasMins;

  int64_t blocks() const { return int64_t(llvm::divideCeil(uint64_t(depth), uint64_t(block))); }
  /// Returns the depth if all blocks are whole.
  int64_t paddedDepth() const { return blocks() * block; }
  /// Returns the number of fused multiply-adds of a result.
  int64_t stepsPerBlock() const { return hasMins ? 2 : 1; }
  int64_t steps() const { return blocks() * stepsPerBlock(); }
};

/// Some rows of a block matmul, quantised by the formulas of docs/numerics.md.
class QuantizedRows {
public:
  QuantizedRows(const BlockSizes &sizes, uint32_t begin, uint32_t count, CommandStream &stream);

  /// Appends the tiles that quantise the rows of |x| (f32, outside, rows as n and entries as w), which use up to
  /// |budget| bytes of a lane.
  void make(const TileView &x, uint64_t budget, std::vector<Tile> &tiles);

  /// Bytes per lane of |rows| quantised rows, and of the least that must be free to quantise them.
  static uint64_t bytesToKeep(const BlockSizes &sizes, int64_t rows, const Chip &chip);
  static uint64_t bytesToMake(const BlockSizes &sizes, int64_t rows, const Chip &chip);

  const uint32_t begin, count;
  TileView integers; ///< i8: blocks, entries of a block, 1, rows
  /// f32, in every lane: rows, lanes, 1, steps. The steps of a block are its scale and, if there are minima, the sum of
  /// its integers times the scale.
  TileView factors;

private:
  /// Some blocks of some rows.
  struct Piece {
    uint32_t row, rows, block, blocks;
  };
  void makePiece(const Piece &piece, const TileView &x, Tile &tile);
  void loadPiece(const Piece &piece, const TileView &x, const TileView &whole, const TileView &spread,
                 Tile &tile) const;
  void addTotals(const Piece &piece, const TileView &scales, const TileView &of, Tile &tile);
  TileView factorsOf(const Piece &piece, uint32_t step) const;

  const BlockSizes sizes;
  CommandStream &stream;
  const Chip &chip;
  std::optional<TileView> ones; ///< i8: a block of weights in each lane
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_CONTRACTION_QUANTIZEDROWS_H
