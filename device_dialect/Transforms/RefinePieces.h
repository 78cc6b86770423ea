//===- RefinePieces.h - Pieces under finer dims -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// A copy of windows reads 8 x 7 x 8 x 7 positions where the one before it, which shifts the image, makes 56 x 56. To
// become one copy both are told in dims that are fine enough for both.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_TRANSFORMS_REFINEPIECES_H
#define TESSERA_DEVICE_DIALECT_TRANSFORMS_REFINEPIECES_H

#include "device_dialect/IR/Pieces.h"

namespace tessera::device {

using Dims = llvm::SmallVector<int64_t>;

/// The coarsest dims, none of size 1, of which the dims of both shapes are products; both have as many elements.
/// Nothing where there are none.
std::optional<Dims> commonDims(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);

/// Pieces that write a tensor of dims |dims| as pieces that write the same bytes under |fine|, finer dims of it.
/// Nothing where steps do not let them.
std::optional<std::vector<Piece>> writeRefined(llvm::ArrayRef<Piece> pieces, llvm::ArrayRef<int64_t> dims,
                                               llvm::ArrayRef<int64_t> fine);

/// A copy whose only source has finer dims; dims of its result may be finer then, too.
struct RefinedCopy {
  std::vector<Piece> pieces;
  Dims resultDims;
};
/// |pieces| read dims |from| and write |to|; |fine| are finer dims of |from|. No dim of |fine| is read along two dims
/// of the result. Nothing where steps, or dims of the result, do not let them.
std::optional<RefinedCopy> readRefined(llvm::ArrayRef<Piece> pieces, llvm::ArrayRef<int64_t> from,
                                       llvm::ArrayRef<int64_t> to, llvm::ArrayRef<int64_t> fine);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_TRANSFORMS_REFINEPIECES_H
