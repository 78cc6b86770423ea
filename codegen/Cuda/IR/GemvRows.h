//===- GemvRows.h - Integer weights as a warp reads them --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_IR_GEMVROWS_H
#define TESSERA_CODEGEN_CUDA_IR_GEMVROWS_H

#include "llvm/Support/MathExtras.h"

namespace tessera::cuda {

inline constexpr int64_t kMostGemvRows = 8;

/// The packed weights of a column: chunks of 16 bytes, one for a thread at a time, and scales behind them. |lanes|
/// neighbouring threads have a block of K together, dealt to them in runs of kRun, the first run of each, then the
/// second ..: what they load of the other side at once is one run of memory.
struct GemvRows {
  static constexpr int64_t kRun = 4, kChunkBytes = 16;

  int64_t depth, bits;
  int64_t group; ///< entries of K that share a scale; 0: there are none

  int64_t chunkElements() const { return kChunkBytes * 8 / bits; }
  int64_t runs() const { return chunkElements() / kRun; } ///< of a chunk
  int64_t chunks() const { return depth / chunkElements(); }
  int64_t groups() const { return group ? int64_t(llvm::divideCeil(depth, group)) : 0; }
  int64_t weightBytes() const { return depth * bits / 8; }
  int64_t rowBytes() const { return weightBytes() + int64_t(llvm::alignTo(groups() * 4, kChunkBytes)); }

  /// 8 or a smaller power of two; 0: no thread's chunk would be of whole runs of groups.
  int64_t lanes() const {
    for (int64_t lanes = 8; lanes > 0; lanes /= 2) {
      int64_t block = lanes * chunkElements();
      bool isWhole = depth % 32 == 0 && depth % block == 0;
      bool fits = groups() <= 1 || group % block == 0 || (block % group == 0 && group % (lanes * kRun) == 0);
      if (isWhole && fits) {
        return lanes;
      }
    }
    return 0;
  }
  /// Scales of a chunk, neighbours; with one for all of K it is left to the end.
  int64_t chunkScales() const {
    int64_t block = lanes() * chunkElements();
    return groups() <= 1 ? 0 : group >= block ? 1 : block / group;
  }
  /// Where element |element| of chunk |chunk| comes from.
  int64_t depthOf(int64_t chunk, int64_t element) const {
    int64_t lanes = this->lanes(), run = element / kRun;
    return chunk / lanes * lanes * chunkElements() + run * lanes * kRun + chunk % lanes * kRun + element % kRun;
  }
};

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_IR_GEMVROWS_H
