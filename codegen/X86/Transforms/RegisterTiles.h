//===- RegisterTiles.h - Cost model of register tiles -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_TRANSFORMS_REGISTERTILES_H
#define TESSERA_CODEGEN_X86_TRANSFORMS_REGISTERTILES_H

#include <cstdint>

namespace tessera::x86 {

/// A matmul in terms of register tiles: |rowRuns| runs of |rowsPerRun| rows that a tile should not cross (rows of an
/// image; one run for a matrix), |steps| K steps, and |columns|.
struct TiledContraction {
  int64_t rowRuns, rowsPerRun, steps, columns;
  double slowdown = 1; ///< time of the multiplying instruction relative to an f32 multiply-add
};

/// Slowdown of vdpbf16ps on processors with AMX, which begin one every second cycle (measured: half of f32's flops).
/// Processors with vdpbf16ps but without AMX begin as many as multiply-adds.
inline constexpr double kPairSlowdownBesideAmx = 4;

/// Returns the rows of 16 * |blocks| columns that fit the registers of |vectorBytes| bytes; 0 if not even one fits.
int64_t maxTileRows(int64_t vectorBytes, int64_t blocks);

/// Returns the positions of an output row that a depthwise kernel sums together, for f32 or |integers| images.
int64_t depthwiseTileRows(int64_t vectorBytes, bool integers);

/// Returns the cycles of |contraction| with panels of |panelBlocks| blocks.
double tileCycles(int64_t vectorBytes, int64_t panelBlocks, const TiledContraction &contraction);

/// Returns the cheapest panel width, in blocks of 16 columns.
int64_t choosePanelBlocks(int64_t vectorBytes, const TiledContraction &contraction);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_TRANSFORMS_REGISTERTILES_H
