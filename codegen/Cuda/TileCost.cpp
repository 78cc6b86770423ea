//===- TileCost.cpp - How long a chip takes for tiles of a product --------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/TileCost.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace tessera::cuda {
namespace {

constexpr double kL2BytesPerCycle = 48; ///< that a multiprocessor gets

/// Cycles of a multiprocessor for one step of K of a block: the longest of its products, its copies from L2 and its
/// passes over shared memory, and some of the others, for they do not hide each other whole. So of tiles that products
/// bind all the same, the one is fastest that moves the fewest bytes.
double cyclesOfStep(TileAttr tile, const ProductRate &rate) {
  constexpr double kPassBytes = 128; // of shared memory: all banks, of 4 bytes each, in a cycle
  constexpr double kExposed = 0.15;  // of what is shorter than the longest
  auto rows = double(tile.getRows()), columns = double(tile.getColumns()), kBytes = double(tile.getKBytes());
  // Copies write a stage once; each warp reads its rows and columns, so that those of A are read by as many warps as
  // lie side by side, and those of B by as many as lie one below the other.
  double read = kBytes * (rows * double(tile.getWarpColumns()) + columns * double(tile.getWarpRows()));
  double parts[] = {rows * columns * kBytes / rate.bytes, double(tile.stageBytes()) / kL2BytesPerCycle,
                    (double(tile.stageBytes()) + read) / kPassBytes};
  double most = *std::max_element(std::begin(parts), std::end(parts));
  return most + kExposed * (parts[0] + parts[1] + parts[2] - most);
}

} // namespace

double cyclesOf(const TiledProduct &product, TileAttr tile, const ProductRate &rate) {
  constexpr double kStepLatency = 600;    // from the start of a copy to its bytes
  constexpr double kStart = 1500;         // of a block: indices, first copies
  constexpr double kStoredPerThread = 12; // for a sum: epilogue and store
  constexpr double kArrival = 2000;       // of a block that shares its tile: stores, fences, atomic
  constexpr int64_t kSharedBytes = 160 << 10, kThreads = 1024; // of blocks at once on a multiprocessor
  int64_t rows = tile.getRows(), columns = tile.getColumns(), stages = tile.getStages(), split = tile.getSplitK();
  int64_t tiles =
      product.batch * llvm::divideCeil(product.rows, rows) * llvm::divideCeil(product.columnsWritten, columns);
  auto steps = double(tile.stepsOf(product.kBytes));
  double step = cyclesOfStep(tile, rate);
  double end = double(rows * columns) / double(tile.threads()) * kStoredPerThread;
  // What blocks of one tile leave for each other goes through L2, and the last one reads all of it.
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
