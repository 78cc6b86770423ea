//===- DirectStore.h - Results stored directly to outputs -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_DECISIONS_DIRECTSTORE_H
#define TESSERA_CODEGEN_NPU_DECISIONS_DIRECTSTORE_H

#include "codegen/Npu/Stream/CommandStream.h"
#include "codegen/Npu/Stream/LoopNest.h"
#include <optional>

namespace tessera::npu {

/// A part of a value that a later copy would move from off-chip memory to a result of the model, in another element
/// order. Instead, each tile that computes elements of the part stores them at their final position.
struct DirectStore {
  struct Dim {
    int64_t size;
    int64_t step;   ///< elements along that dim of the value
    int64_t stride; ///< bytes in the result
  };
  llvm::SmallVector<Dim, 2> dims[4]; ///< by n, c, h, w of the value
  int64_t begin[4];                  ///< first element within the value; a negative channel lies before the value
  Tensor to;                         ///< address of the first element in the result
  const Chip *chip;

  /// Returns the commands that store the tile |local|, whose first element is element |at| of the value.
  std::vector<Descriptor> commands(const TileView &local, const int64_t *at) const;
};

/// Converts a loop nest into a DirectStore. The strides of |nest| and the entries of |offsets| (in elements) are those
/// of the result, then of the source. |to| is the result. The value has the dims |shape| and is dense, starting at
/// element |first| of the source. Returns nothing if the nest does not decompose into dims of the value.
std::optional<DirectStore> makeDirectStore(const LoopNest &nest, llvm::ArrayRef<int64_t> offsets, const Tensor &to,
                                           llvm::ArrayRef<int64_t> shape, int64_t first, const Chip &chip);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_DECISIONS_DIRECTSTORE_H
