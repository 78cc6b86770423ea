//===- RowPieces.h - Rows that do not fit a lane ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_ROWS_ROWPIECES_H
#define TESSERA_CODEGEN_NPU_EMISSION_ROWS_ROWPIECES_H

#include "codegen/Npu/Contraction/Tiler.h"
#include "codegen/Npu/Emission/EmissionContext.h"

namespace tessera::npu {

/// Processes rows that are spread over the lanes (c) and too long for a lane: each is read several times, in segments
/// along w.
class RowPieces {
public:
  /// |bytesOfElement|: bytes per lane and element of all buffers that a segment is loaded to, computed in and stored
  /// from.
  RowPieces(const Shape &whole, uint64_t bytesOfElement, CommandStream &stream);

  /// Rows processed in one pass, one per lane.
  struct Rows {
    uint32_t begin, count;
  };
  /// Calls |visit| for each pass over the rows.
  void eachRows(llvm::function_ref<void(Rows rows)> visit) const;

  /// Builds a tile for each segment of the rows.
  void eachPiece(Rows rows, BuildTile visit);

  /// Allocates |width| numbers per row that stay in the lanes from segment to segment.
  TileView keep(Rows rows, uint32_t width);

  /// Loads the terms to sum of one segment, as f32.
  using LoadTerms =
      llvm::function_ref<TileView(const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile)>;
  /// Returns the sum of each row's terms, or of their squares, in the order of OrderedSum. The partial sums stay in the
  /// lane between segments, so the result has the same bits as that of an undivided row.
  TileView sum(Rows rows, bool squares, LoadTerms terms);

  /// Appends the tiles, which use a whole lane.
  static void append(Tiler &tiler, llvm::function_ref<std::vector<Tile>()> make);

  std::vector<Tile> tiles;

private:
  const Shape whole;
  const uint32_t elements; ///< per segment: a multiple of the number of partial sums
  CommandStream &stream;
};

/// Returns true if a tile with one row per lane fits local memory.
bool rowsFit(const Shape &whole, BuildTile build, EmissionContext &context);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_ROWS_ROWPIECES_H
