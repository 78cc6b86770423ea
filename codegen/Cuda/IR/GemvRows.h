//===- GemvRows.h - Layout of integer weights for cuda.gemv -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_IR_GEMVROWS_H
#define TESSERA_CODEGEN_CUDA_IR_GEMVROWS_H

#include "llvm/Support/MathExtras.h"

namespace tessera::cuda {

inline constexpr int64_t kMostGemvRows = 8;

/// Layout of the packed weights of a column: chunks of 16 bytes, each read by one thread at a time, followed by scales.
/// |lanes| neighbouring threads share a block of K, which is dealt to them in runs of kRun elements: the first run of
/// each thread, then the second, and so on. Thus the elements of the left side that they load at once are contiguous.
struct GemvRows {
  static constexpr int64_t kRun = 4, kChunkBytes = 16;

  int64_t depth, bits;
  int64_t group; ///< entries of K that share a scale; 0: no scales

  int64_t chunkElements() const { return kChunkBytes * 8 / bits; }
  int64_t runs() const { return chunkElements() / kRun; } ///< runs of a chunk
  int64_t chunks() const { return depth / chunkElements(); }
  int64_t groups() const { return group ? int64_t(llvm::divideCeil(depth, group)) : 0; }
  int64_t weightBytes() const { return depth * bits / 8; }
  int64_t rowBytes() const { return weightBytes() + int64_t(llvm::alignTo(groups() * 4, kChunkBytes)); }

  /// Returns 8 or a smaller power of two; 0 if no chunk of a thread would consist of whole runs of groups.
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
  /// Returns the number of scales of a chunk, which are contiguous. 0 if K has a single scale, which is applied at the
  /// end.
  int64_t chunkScales() const {
    int64_t block = lanes() * chunkElements();
    return groups() <= 1 ? 0 : group >= block ? 1 : block / group;
  }
  /// Returns the index in K of element |element| of chunk |chunk|.
  int64_t depthOf(int64_t chunk, int64_t element) const {
    int64_t lanes = this->lanes(), run = element / kRun;
    return chunk / lanes * lanes * chunkElements() + run * lanes * kRun + chunk % lanes * kRun + element % kRun;
  }
};

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_IR_GEMVROWS_H
