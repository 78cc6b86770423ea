//===- RefinePieces.h - Copy regions under finer dims -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// A copy of windows reads 8 x 7 x 8 x 7 positions of a result that the previous copy, which shifts the image, writes as
// 56 x 56. To become one copy, both are expressed in dims that are fine enough for both.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_TRANSFORMS_REFINEPIECES_H
#define TESSERA_DEVICE_DIALECT_TRANSFORMS_REFINEPIECES_H

#include "device_dialect/IR/Pieces.h"

namespace tessera::device {

using Dims = llvm::SmallVector<int64_t>;

/// Returns the coarsest common refinement of two shapes: every dim of |a| and of |b| is the product of consecutive
/// returned dims, none of which is 1. Both shapes must have the same number of elements. Returns nothing if no such
/// dims exist.
std::optional<Dims> commonDims(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);

/// Returns the regions, which write a tensor of dims |dims|, as regions that write the same bytes with the finer dims
/// |fine|; nothing if steps prevent that.
std::optional<std::vector<Piece>> writeRefined(llvm::ArrayRef<Piece> pieces, llvm::ArrayRef<int64_t> dims,
                                               llvm::ArrayRef<int64_t> fine);

/// A copy whose only source has finer dims; its result may have finer dims too.
struct RefinedCopy {
  std::vector<Piece> pieces;
  Dims resultDims;
};
/// Refines |pieces|, which read dims |from| and write |to|, to the finer dims |fine| of |from|. No dim of |fine| is
/// read along two dims of the result. Returns nothing if steps or dims of the result prevent that.
std::optional<RefinedCopy> readRefined(llvm::ArrayRef<Piece> pieces, llvm::ArrayRef<int64_t> from,
                                       llvm::ArrayRef<int64_t> to, llvm::ArrayRef<int64_t> fine);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_TRANSFORMS_REFINEPIECES_H
