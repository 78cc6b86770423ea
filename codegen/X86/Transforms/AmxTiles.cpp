//===- AmxTiles.cpp - Cost model of matmuls on AMX tiles ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Transforms/AmxTiles.h"

#include "llvm/Support/MathExtras.h"
#include <algorithm>

namespace tessera::x86 {

/// Returns the fewest equal chunks, of whole K steps, that |bytes| divides into.
static KSplit wholeChunks(int64_t bytes) {
  int64_t steps = bytes / 4, count = llvm::divideCeil(bytes, kMostChunk);
  while (steps % count != 0) {
    ++count;
  }
  return {bytes / count, count};
}

KSplit chunksOfRow(int64_t bytes) {
  constexpr double kWorthCopying = 1.25; // padding requires a copy of the rows
  int64_t fewest = llvm::divideCeil(bytes, kMostChunk);
  KSplit whole = wholeChunks(bytes);
  if (whole.count <= kWorthCopying * double(fewest)) {
    return whole;
  }
  int64_t chunk = 4 * int64_t(llvm::divideCeil(bytes / 4, fewest));
  return {chunk, fewest};
}

KSplit chunksOfTaps(PackedOrder order, int64_t channels, int64_t elementBytes, int64_t kh, int64_t kw,
                    bool neighbours) {
  bool pixels = order == PackedOrder::pixels;
  int64_t together = pixels ? kPixel : kBlock, mostPadding = pixels ? 1 : 4;
  int64_t block = together * elementBytes, least = int64_t(llvm::alignTo(channels, together)) * elementBytes;
  KSplit best;
  for (int64_t bytes = least; bytes < least + mostPadding * block; bytes += block) {
    KSplit chunks = wholeChunks(neighbours ? kw * bytes : bytes);
    chunks.count *= neighbours ? kh : kh * kw;
    bool known = paddedDepth(order, channels, elementBytes, kw, chunks.chunk) == bytes;
    if (known && (best.count == 0 || chunks.count < best.count)) {
      best = chunks;
    }
  }
  return best;
}

double amxTileCycles(const TiledContraction &contraction, int64_t chunks, int64_t copied) {
  constexpr int64_t kRows = kAmxTileRows / 2;
  // Short rows of an image share a tile, with gaps between them.
  int64_t together = std::max<int64_t>(1, (kRows + 2) / (contraction.rowsPerRun + 2));
  double tiles = contraction.rowsPerRun < kRows
                     ? double(llvm::divideCeil(contraction.rowRuns, together))
                     : double(contraction.rowRuns * llvm::divideCeil(contraction.rowsPerRun, kRows));
  double blocks = double(llvm::divideCeil(contraction.columns, kBlock)),
         rows = double(contraction.rowRuns * contraction.rowsPerRun);
  // A tile operation takes one cycle per row; its operands often come from L2.
  double perProduct =
      contraction.rowRuns == 1 ? std::max<double>(12, std::min<double>(20, 1.25 * contraction.rowsPerRun)) : 20;
  return tiles * blocks * (double(chunks) * perProduct + 40) + 3 * rows * blocks + double(copied) / 8;
}

} // namespace tessera::x86
