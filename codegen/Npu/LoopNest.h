//===- LoopNest.h - Walks over several tensors at once --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_LOOPNEST_H
#define TESSERA_CODEGEN_NPU_LOOPNEST_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace tessera::npu {

/// Element strides of tensors along common dims.
struct LoopNest {
  llvm::SmallVector<int64_t> sizes;
  llvm::SmallVector<llvm::SmallVector<int64_t>> strides; ///< by tensor, then dim

  /// Without dims of one element, and with neighbours as one where every tensor lets them.
  LoopNest simplified() const;
};

/// Of dense row-major tensors, the first of which gives the dims; the others broadcast to it.
LoopNest broadcastNest(llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes);

/// How leading dims of |of|, which broadcast to |batch|, count: for each index into |batch| a number from 0 on.
llvm::SmallVector<int64_t> batchesOf(llvm::ArrayRef<int64_t> of, llvm::ArrayRef<int64_t> batch);

/// A part of a nest that begins |offsets| elements into each tensor.
struct LoopNestPart {
  LoopNest nest;
  llvm::SmallVector<int64_t> offsets;
};
/// Parts of at most four dims that are the nest together: the smallest dims are taken one by one.
llvm::SmallVector<LoopNestPart> cutToFour(const LoopNest &whole);

/// Parts of a nest as n, c, h, w: the last dim is w, the one before it c. A single dim, or the last of two
/// whose first is short, is spread over |lanes|, which may leave a rest.
struct Part {
  int64_t sizes[4];
  llvm::SmallVector<std::array<int64_t, 4>> strides; ///< by tensor
  llvm::SmallVector<int64_t> offsets;                ///< by tensor, in elements
};
llvm::SmallVector<Part> partsOf(const LoopNest &nest, int64_t lanes);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_LOOPNEST_H
