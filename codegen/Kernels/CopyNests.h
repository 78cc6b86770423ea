//===- CopyNests.h - Regions of a copy as loop nests ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_COPYNESTS_H
#define TESSERA_CODEGEN_KERNELS_COPYNESTS_H

#include "codegen/Kernels/LoopNest.h"

#include "device_dialect/IR/Pieces.h"

namespace tessera::kernels {

/// Loop nest of one rectangle of the result. Its tensors are {source, result}, or {result} for a fill.
struct CopyNest {
  int64_t source; ///< index of the source operand; -1 for a fill
  LoopNest nest;
};

/// Returns the nests of all regions and, with |fill|, of the uncovered elements. Returns nothing if a region spreads or
/// permutes the channels of a blocked tensor, or if the uncovered elements are not known to form at most 64 rectangles.
/// Offsets and sizes along the channels of blocked tensors must be numbers.
std::optional<llvm::SmallVector<CopyNest>> copyNests(llvm::ArrayRef<mlir::RankedTensorType> sources,
                                                     mlir::RankedTensorType result,
                                                     llvm::ArrayRef<device::SymbolicPiece> pieces, bool fill);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_COPYNESTS_H
