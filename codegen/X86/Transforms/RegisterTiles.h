//===- RegisterTiles.h - What a register tile costs -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_TRANSFORMS_REGISTERTILES_H
#define TESSERA_CODEGEN_X86_TRANSFORMS_REGISTERTILES_H

#include <cstdint>

namespace tessera::x86 {

/// A matrix product as register tiles walk it: |rowRuns| runs of |rowsPerRun| rows that a tile does not leave (rows of
/// an image; one run for a matrix), |steps| of K, |columns|.
struct TiledProduct {
  int64_t rowRuns, rowsPerRun, steps, columns;
  double slowdown = 1; ///< of the instruction that multiplies, beside a multiply-add of f32
};

/// Of vdpbf16ps where there is AMX: these processors begin one every second cycle (measured: half of f32's flops).
/// Those that have it alone begin as many as multiply-adds.
inline constexpr double kPairSlowdownBesideAmx = 4;

/// Rows of 16 * |blocks| columns that fit the registers of |vectorBytes| bytes; 0 when not even one does.
int64_t maxTileRows(int64_t vectorBytes, int64_t blocks);

/// Positions of an output row that a depthwise kernel sums together, of f32 images or of integer ones.
int64_t depthwiseTileRows(int64_t vectorBytes, bool integers);

/// Cycles of the product with panels of |panelBlocks| blocks.
double tileCycles(int64_t vectorBytes, int64_t panelBlocks, const TiledProduct &product);

/// The panel width, in blocks of 16 columns, that costs least.
int64_t choosePanelBlocks(int64_t vectorBytes, const TiledProduct &product);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_TRANSFORMS_REGISTERTILES_H
