//===- DirectStore.h - Results that leave the chip as they are made -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_DIRECTSTORE_H
#define TESSERA_CODEGEN_NPU_DIRECTSTORE_H

#include "codegen/Npu/LoopNest.h"
#include "codegen/Npu/Stream.h"
#include <optional>

namespace tessera::npu {

/// Elements of a value that a later copy would take from outside the chip to a result of the model, in another order:
/// each tile that makes some of them stores them there.
struct DirectStore {
  struct Dim {
    int64_t size;
    int64_t step;   ///< of the value, along one of its dims
    int64_t stride; ///< in bytes, of the result
  };
  llvm::SmallVector<Dim, 2> dims[4]; ///< by n, c, h, w of the value
  int64_t begin[4];                  ///< of the first element, in the value; channels before it are another one's
  Tensor to;                         ///< of the first element
  const Chip *chip;

  /// The commands that store what |local| holds: the part of the value from |at| on.
  std::vector<Descriptor> commands(const TileView &local, const int64_t *at) const;
};

/// |nest|: strides of the result, then of the source. Both begin |offsets| elements into theirs; |to| is the result.
/// The value has the dims |shape| and lies dense at the source's element |first|. Nothing where its dims do not show.
std::optional<DirectStore> makeDirectStore(const LoopNest &nest, llvm::ArrayRef<int64_t> offsets, const Tensor &to,
                                           llvm::ArrayRef<int64_t> shape, int64_t first, const Chip &chip);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_DIRECTSTORE_H
