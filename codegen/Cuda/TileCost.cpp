//===- TileCost.cpp - How long a chip takes for tiles of a product --------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/TileCost.h"

#include "llvm/Support/MathExtras.h"

namespace tessera::cuda {

double cyclesOf(const TiledProduct &product, TileAttr tile, const ProductRate &rate) {
  constexpr double kCopyBytes = 48;       // that a multiprocessor gets from L2 in a cycle
  constexpr double kStepLatency = 600;    // from the start of a copy to its bytes
  constexpr double kStart = 1500;         // of a block: indices, first copies
  constexpr double kStoredPerThread = 12; // for a sum: epilogue and store
  constexpr double kArrival = 2000;       // of a block that shares its tile: stores, fences, atomic
  constexpr int64_t kSharedBytes = 160 << 10, kThreads = 1024; // of blocks at once on a multiprocessor
  int64_t rows = tile.getRows(), columns = tile.getColumns(), stages = tile.getStages(), split = tile.getSplitK();
  int64_t tiles =
      product.batch * llvm::divideCeil(product.rows, rows) * llvm::divideCeil(product.columnsWritten, columns);
  auto steps = double(tile.stepsOf(product.kBytes));
  double products = double(rows * columns * tile.getKBytes()) / rate.bytes;
  double step = std::max(products, double(tile.stageBytes()) / kCopyBytes);
  double end = double(rows * columns) / double(tile.threads()) * kStoredPerThread;
  // What blocks of one tile leave for each other goes through L2, and the last one reads all of it.
  double leave = split > 1 ? double(tile.partBytes()) / kCopyBytes : 0, join = double(split) * leave;
  double start = kStart + (split > 1 ? kArrival : 0);
  double latency = steps * kStepLatency / double(stages - 1) + start + leave + join + end;
  int64_t atOnce = std::max<int64_t>(1, std::min(kSharedBytes / tile.sharedBytes(), kThreads / tile.threads()));
  int64_t rounds = llvm::divideCeil(tiles * split, rate.multiprocessors);
  auto ends = double(llvm::divideCeil(tiles, rate.multiprocessors));
  double busy = double(rounds) * (steps * step + leave) + ends * (join + end / 4) + start;
  return std::max(busy, double(llvm::divideCeil(rounds, atOnce)) * std::max(latency, steps * step));
}

} // namespace tessera::cuda
