//===- CopyNests.h - Pieces of a copy as loop nests -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_COPYNESTS_H
#define TESSERA_CODEGEN_KERNELS_COPYNESTS_H

#include "codegen/Kernels/LoopNest.h"

#include "device_dialect/IR/Pieces.h"

namespace tessera::kernels {

/// A rectangle of the result: tensors of the nest are {source, result}, or {result} for a fill.
struct CopyNest {
  int64_t source; ///< operand, -1: fill
  LoopNest nest;
};

/// The nests of all pieces and, with |fill|, of what they leave uncovered. Nothing if a piece spreads or
/// permutes the channels of a blocked tensor, or leaves uncovered what is not made of rectangles.
std::optional<llvm::SmallVector<CopyNest>> copyNests(llvm::ArrayRef<mlir::RankedTensorType> sources,
                                                     mlir::RankedTensorType result,
                                                     llvm::ArrayRef<device::Piece> pieces, bool fill);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_COPYNESTS_H
