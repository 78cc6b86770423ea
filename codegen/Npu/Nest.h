//===- Nest.h - Walks over several tensors at once --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_NEST_H
#define TESSERA_CODEGEN_NPU_NEST_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace tessera::npu {

/// Element strides of tensors along common dims.
struct Nest {
  llvm::SmallVector<int64_t> sizes;
  llvm::SmallVector<llvm::SmallVector<int64_t>> strides; ///< by tensor, then dim

  /// Without dims of one element, and with neighbours as one where every tensor lets them.
  Nest simplified() const;
};

/// Of dense row-major tensors, the first of which gives the dims; the others broadcast to it.
Nest broadcastNest(llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes);

/// A nest of up to four dims as n, c, h, w: the last dim is w, the one before it c. A single dim is spread over
/// |lanes|, which may leave a rest: then there are two. Nothing where there are more than four dims.
struct Part {
  int64_t sizes[4];
  llvm::SmallVector<std::array<int64_t, 4>> strides; ///< by tensor
  llvm::SmallVector<int64_t> offsets;                ///< by tensor, in elements
};
llvm::SmallVector<Part> partsOf(const Nest &nest, int64_t lanes);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_NEST_H
