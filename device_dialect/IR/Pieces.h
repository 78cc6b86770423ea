//===- Pieces.h - Arithmetic on the regions of a copy -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// All offsets, sizes and steps are in elements of the logical dims (see DeviceAttrs.td).
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_IR_PIECES_H
#define TESSERA_DEVICE_DIALECT_IR_PIECES_H

#include "device_dialect/IR/DeviceAttrs.h"
#include <optional>

namespace tessera::device {

/// A region of a copy under construction; `get` returns the attribute.
struct Piece {
  int64_t source = 0;
  llvm::SmallVector<int64_t> sizes, dstOffsets, dstSteps, srcDims, srcOffsets, srcSteps;

  /// Returns the region that copies all of a tensor of dims `sizes` unchanged.
  static Piece identity(int64_t source, llvm::ArrayRef<int64_t> sizes);
  explicit Piece(PieceAttr attr);
  Piece() = default;

  PieceAttr get(mlir::MLIRContext *context) const;
};

/// An inclusive range of indices.
struct Range {
  int64_t first, last;
};

/// Returns, for every source dim, the range of indices that the region reads.
llvm::SmallVector<Range> sourceRanges(PieceAttr piece, size_t sourceRank);

/// Returns the number of elements that the region writes.
int64_t pieceElements(PieceAttr piece);

/// Returns the strides of a row-major tensor, in units of |unit|.
llvm::SmallVector<int64_t> denseStrides(llvm::ArrayRef<int64_t> dims, int64_t unit = 1);

/// Copies one region between dense row-major tensors of the given dims.
void movePiece(PieceAttr piece, const char *source, llvm::ArrayRef<int64_t> sourceDims, char *result,
               llvm::ArrayRef<int64_t> resultDims, int64_t elementBytes);

/// Returns the first two regions found that write a common element of the result.
std::optional<std::pair<size_t, size_t>> findOverlap(llvm::ArrayRef<PieceAttr> pieces);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_IR_PIECES_H
