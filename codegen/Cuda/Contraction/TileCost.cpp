//===- TileCost.cpp - Cost model of the tiles of a contraction ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/Contraction/TileCost.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace tessera::cuda {
namespace {

constexpr double kL2BytesPerCycle = 48; ///< bytes per multiprocessor

/// Returns the cycles of a multiprocessor for one step of K of a block: the longest of its multiplications, its copies
/// from L2 and its passes over shared memory, plus a share of the other two, which do not overlap entirely. Therefore,
/// among tiles that are all bound by multiplications, the one that moves the fewest bytes is fastest.
double cyclesOfStep(TileAttr tile, const ContractionRate &rate) {
  constexpr double kPassBytes = 128; // shared memory per cycle: all banks, of 4 bytes each
  constexpr double kExposed = 0.15;  // share of the shorter parts that does not overlap
  auto rows = double(tile.getRows()), columns = double(tile.getColumns()), kBytes = double(tile.getKBytes());
  // Copies write a stage once; each warp reads its rows and columns. So as many warps read the same rows of A as there
  // are warps along the columns, and vice versa for B.
  double read = kBytes * (rows * double(tile.getWarpColumns()) + columns * double(tile.getWarpRows()));
  double parts[] = {rows * columns * kBytes / rate.bytes, double(tile.stageBytes()) / kL2BytesPerCycle,
                    (double(tile.stageBytes()) + read) / kPassBytes};
  double most = *std::max_element(std::begin(parts), std::end(parts));
  return most + kExposed * (parts[0] + parts[1] + parts[2] - most);
}

} // namespace

double cyclesOf(const TiledContraction &contraction, TileAttr tile, const ContractionRate &rate) {
  constexpr double kStepLatency = 600;    // from the start of a copy until its bytes arrive
  constexpr double kStart = 1500;         // start of a block: indices, first copies
  constexpr double kStoredPerThread = 12; // epilogue and store of a sum
  constexpr double kArrival = 2000;       // stores, fences and atomic of a block that shares its tile
  constexpr int64_t kSharedBytes = 160 << 10, kThreads = 1024; // limits for the resident blocks of a multiprocessor
  int64_t rows = tile.getRows(), columns = tile.getColumns(), stages = tile.getStages(), split = tile.getSplitK();
  int64_t tiles = likelyOf(contraction.batch * ceilDiv(contraction.rows, rows)) *
                  llvm::divideCeil(contraction.columnsWritten, columns);
  auto steps = double(tile.stepsOf(contraction.kBytes));
  double step = cyclesOfStep(tile, rate);
  double end = double(rows * columns) / double(tile.threads()) * kStoredPerThread;
  // Blocks of one tile exchange their sums through L2, and the last block reads all of them.
  double leave = split > 1 ? double(tile.partBytes()) / kL2BytesPerCycle : 0, join = double(split) * leave;
  double start = kStart + (split > 1 ? kArrival : 0);
  double latency = steps * kStepLatency / double(stages - 1) + start + leave + join + end;
  int64_t atOnce = std::max<int64_t>(1, std::min(kSharedBytes / tile.sharedBytes(), kThreads / tile.threads()));
  int64_t rounds = llvm::divideCeil(tiles * split, rate.multiprocessors);
  auto ends = double(llvm::divideCeil(tiles, rate.multiprocessors));
  double busy = double(rounds) * (steps * step + leave) + ends * (join + end / 4) + start;
  return std::max(busy, double(llvm::divideCeil(rounds, atOnce)) * std::max(latency, steps * step));
}

} // namespace tessera::cuda
