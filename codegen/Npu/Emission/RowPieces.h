//===- RowPieces.h - Rows larger than a lane, piece by piece ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_ROWPIECES_H
#define TESSERA_CODEGEN_NPU_EMISSION_ROWPIECES_H

#include "codegen/Npu/Emission/EmissionContext.h"
#include "codegen/Npu/Tiler.h"

namespace tessera::npu {

/// Rows over lanes (c), none of which a lane holds: each is read several times, piece by piece along w.
class RowPieces {
public:
  /// |bytesOfElement|: of a lane, in all that a piece is loaded to, computed and stored from.
  RowPieces(const Shape &whole, uint64_t bytesOfElement, Stream &stream);

  /// Rows of one pass, one in each lane.
  struct Rows {
    uint32_t begin, count;
  };
  void eachRows(llvm::function_ref<void(Rows rows)> visit) const;

  /// A tile for every piece of the rows.
  void eachPiece(Rows rows, BuildTile visit);

  /// Something that stays in lanes from piece to piece, |width| numbers a row.
  TileView keep(Rows rows, uint32_t width);

  /// What is summed of a piece: in f32.
  using LoadTerms =
      llvm::function_ref<TileView(const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile)>;
  /// The sum of each row's terms, or of their squares, in the order of OrderedSum: its partial sums stay in the lane
  /// between pieces, so that the bits are those of a row in one piece.
  TileView sum(Rows rows, bool squares, LoadTerms terms);

  /// Appends the tiles, which use all of a lane.
  static void append(Tiler &tiler, llvm::function_ref<std::vector<Tile>()> make);

  std::vector<Tile> tiles;

private:
  const Shape whole;
  const uint32_t elements; ///< of a piece: whole rounds of partial sums
  Stream &stream;
};

/// Whether the rows of one tile, one in each lane, fit.
bool rowsFit(const Shape &whole, BuildTile build, EmissionContext &context);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_ROWPIECES_H
