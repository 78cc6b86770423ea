//===- LoopNest.h - Loops over several tensors at once ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_STREAM_LOOPNEST_H
#define TESSERA_CODEGEN_NPU_STREAM_LOOPNEST_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace tessera::npu {

/// Common dims of several tensors, and their strides in elements.
struct LoopNest {
  llvm::SmallVector<int64_t> sizes;
  llvm::SmallVector<llvm::SmallVector<int64_t>> strides; ///< by tensor, then dim

  /// Removes dims of size 1 and merges neighbouring dims if the strides of all tensors allow it.
  LoopNest simplified() const;
};

/// Returns the nest of dense row-major tensors. The first shape gives the dims; the other tensors broadcast to it.
LoopNest broadcastNest(llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes);

/// Returns the index into the leading dims |of| for each index into |batch|, to which |of| broadcasts.
llvm::SmallVector<int64_t> batchesOf(llvm::ArrayRef<int64_t> of, llvm::ArrayRef<int64_t> batch);

/// A part of a nest that begins |offsets| elements into each tensor.
struct LoopNestPart {
  LoopNest nest;
  llvm::SmallVector<int64_t> offsets;
};
/// Cuts a nest into parts of at most four dims, by unrolling the smallest dims.
llvm::SmallVector<LoopNestPart> cutToFour(const LoopNest &whole);

/// A part of a nest as n, c, h, w: the last dim is w, the one before it c. A single dim, or a long dim behind a short
/// one, is spread over |lanes|; a remainder becomes another part.
struct Part {
  int64_t sizes[4];
  llvm::SmallVector<std::array<int64_t, 4>> strides; ///< by tensor
  llvm::SmallVector<int64_t> offsets;                ///< by tensor, in elements
};
llvm::SmallVector<Part> partsOf(const LoopNest &nest, int64_t lanes);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_STREAM_LOOPNEST_H
