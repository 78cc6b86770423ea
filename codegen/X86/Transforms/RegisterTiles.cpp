//===- RegisterTiles.cpp - Cost model of register tiles -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Transforms/RegisterTiles.h"

#include "codegen/X86/X86Model.h"

#include "llvm/Support/MathExtras.h"
#include <algorithm>

namespace tessera::x86 {

int64_t maxTileRows(int64_t vectorBytes, int64_t blocks) {
  if (vectorBytes < 64) {
    // 16 registers. AVX2: 12 sums (6 rows of 2), 2 of B, 1 of A. SSE: 12 sums (3 rows of 4), 3 of A, 1 product.
    return blocks > 1 ? 0 : vectorBytes == 32 ? 6 : 3;
  }
  // 32 registers. A single block reads A as an embedded broadcast, which needs no register.
  return blocks == 1 ? 28 : (31 - blocks) / blocks;
}

int64_t depthwiseTileRows(int64_t vectorBytes, bool integers) {
  return vectorBytes == 64 ? (integers ? 16 : 14) : vectorBytes == 32 ? (integers ? 6 : 8) : (integers ? 3 : 6);
}

/// Returns the cycles of one tile of |rows| rows with multiply-adds that take |slowdown| times as long.
static double cyclesOfTile(double vectors, int64_t rows, int64_t blocks, int64_t steps, double slowdown) {
  double loads = vectors == 1 && blocks == 1 ? rows + 1.0 + rows * 0.15 : rows + blocks * vectors;
  double perStep =
      std::max({rows * blocks * vectors / kCore.multiplyAdds * slowdown, loads / kCore.loads, kCore.latency});
  return perStep * steps + 1.5 * rows * blocks * vectors + 30;
}

double tileCycles(int64_t vectorBytes, int64_t panelBlocks, const TiledContraction &contraction) {
  double vectors = 64.0 / vectorBytes;
  int64_t most = maxTileRows(vectorBytes, panelBlocks), runs = contraction.rowRuns, perRun = contraction.rowsPerRun;
  if (perRun < most && runs > 1) {
    // Short runs share a tile.
    int64_t together = std::min(runs, most / perRun);
    runs = llvm::divideCeil(runs, together), perRun *= together;
  }
  int64_t tiles = llvm::divideCeil(perRun, most), rows = perRun / tiles, wide = perRun % tiles;
  int64_t columnBlocks = llvm::divideCeil(contraction.columns, 16);
  auto column = [&](int64_t blocks) {
    return double(runs) *
           (wide * cyclesOfTile(vectors, rows + 1, blocks, contraction.steps, contraction.slowdown) +
            (tiles - wide) * cyclesOfTile(vectors, rows, blocks, contraction.steps, contraction.slowdown));
  };
  double cycles = double(columnBlocks / panelBlocks) * column(panelBlocks);
  return columnBlocks % panelBlocks ? cycles + column(columnBlocks % panelBlocks) : cycles;
}

/// Returns tileCycles() for two threads, which can share only the panels if the matmul has a single row tile.
static double sharedCycles(int64_t vectorBytes, int64_t blocks, const TiledContraction &contraction) {
  int64_t panels = llvm::divideCeil(llvm::divideCeil(contraction.columns, 16), blocks);
  bool oneRowTile = contraction.rowRuns * contraction.rowsPerRun <= maxTileRows(vectorBytes, blocks);
  double uneven = oneRowTile && panels % 2 && panels > 1 && panels < 8 ? 1.1 : 1;
  return tileCycles(vectorBytes, blocks, contraction) * uneven;
}

int64_t choosePanelBlocks(int64_t vectorBytes, const TiledContraction &contraction) {
  int64_t best = 1;
  double bestCycles = sharedCycles(vectorBytes, 1, contraction);
  for (int64_t blocks = 2; blocks <= (contraction.columns + 15) / 16 && maxTileRows(vectorBytes, blocks) > 0;
       ++blocks) {
    double cycles = sharedCycles(vectorBytes, blocks, contraction);
    if (cycles < bestCycles) {
      bestCycles = cycles, best = blocks;
    }
  }
  return best;
}

} // namespace tessera::x86
