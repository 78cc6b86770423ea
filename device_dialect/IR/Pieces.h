//===- Pieces.h - Arithmetic on the pieces of a copy ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// All offsets, sizes and steps are in elements of the logical dims (see DeviceAttrs.td).
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_IR_PIECES_H
#define TESSERA_DEVICE_DIALECT_IR_PIECES_H

#include "device_dialect/IR/DeviceAttrs.h"
#include <optional>

namespace tessera::device {

/// A piece while it is being put together; `get` makes the attribute.
struct Piece {
  int64_t source = 0;
  llvm::SmallVector<int64_t> sizes, dstOffsets, dstSteps, srcDims, srcOffsets, srcSteps;

  /// All of a tensor of dims `sizes`, unmoved.
  static Piece identity(int64_t source, llvm::ArrayRef<int64_t> sizes);
  explicit Piece(PieceAttr attr);
  Piece() = default;

  PieceAttr get(mlir::MLIRContext *context) const;
};

/// An inclusive range of indices.
struct Range {
  int64_t first, last;
};

/// For every source dim the range of indices that the piece reads.
llvm::SmallVector<Range> sourceRanges(PieceAttr piece, size_t sourceRank);

/// Elements the piece writes.
int64_t pieceElements(PieceAttr piece);

/// Of a row-major tensor, of elements of |unit|.
llvm::SmallVector<int64_t> denseStrides(llvm::ArrayRef<int64_t> dims, int64_t unit = 1);

/// Moves one piece between dense row-major tensors of the given dims.
void movePiece(PieceAttr piece, const char *source, llvm::ArrayRef<int64_t> sourceDims, char *result,
               llvm::ArrayRef<int64_t> resultDims, int64_t elementBytes);

/// The first two pieces found that write a common element of the result.
std::optional<std::pair<size_t, size_t>> findOverlap(llvm::ArrayRef<PieceAttr> pieces);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_IR_PIECES_H
