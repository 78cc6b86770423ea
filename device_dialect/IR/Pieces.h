//===- Pieces.h - Arithmetic on the regions of a copy -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// All offsets, sizes and steps are in elements of the logical dims (see DeviceAttrs.td).
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_IR_PIECES_H
#define TESSERA_DEVICE_DIALECT_IR_PIECES_H

#include "device_dialect/IR/DeviceAttrs.h"
#include "top_dialect/IR/Sizes.h"

#include <numeric>
#include <optional>

namespace tessera::device {

/// A region of a copy under construction; `get` returns the attribute. `Number` is the type of sizes and offsets.
template <typename Number>
struct BasicPiece {
  int64_t source = 0;
  llvm::SmallVector<Number> sizes, dstOffsets;
  llvm::SmallVector<int64_t> dstSteps, srcDims;
  llvm::SmallVector<Number> srcOffsets;
  llvm::SmallVector<int64_t> srcSteps;

  /// Returns the region that copies all of a tensor of dims `sizes` unchanged.
  static BasicPiece identity(int64_t source, llvm::ArrayRef<Number> sizes) {
    BasicPiece piece;
    piece.source = source;
    piece.sizes.assign(sizes.begin(), sizes.end());
    piece.dstOffsets.assign(sizes.size(), Number(0));
    piece.dstSteps.assign(sizes.size(), 1);
    piece.srcDims.resize(sizes.size());
    std::iota(piece.srcDims.begin(), piece.srcDims.end(), 0);
    piece.srcOffsets.assign(sizes.size(), Number(0));
    piece.srcSteps.assign(sizes.size(), 1);
    return piece;
  }
  BasicPiece() = default;
  /// If `Number` is int64_t, the region must be known (PieceAttr::isKnown).
  explicit BasicPiece(PieceAttr attr);

  PieceAttr get(mlir::MLIRContext *context) const;
};
using Piece = BasicPiece<int64_t>;
using SymbolicPiece = BasicPiece<Dim>;
template <>
BasicPiece<int64_t>::BasicPiece(PieceAttr attr);
template <>
PieceAttr BasicPiece<int64_t>::get(mlir::MLIRContext *context) const;
template <>
BasicPiece<Dim>::BasicPiece(PieceAttr attr);
template <>
PieceAttr BasicPiece<Dim>::get(mlir::MLIRContext *context) const;

/// Returns the region that copies all of a tensor unchanged.
PieceAttr identityPiece(mlir::RankedTensorType type);

/// An inclusive range of indices.
struct Range {
  int64_t first, last;
};

/// Returns, for every source dim, the range of indices that the region reads. The region must be known.
llvm::SmallVector<Range> sourceRanges(PieceAttr piece, size_t sourceRank);

/// Returns the number of elements that the region writes. The region must be known.
int64_t pieceElements(PieceAttr piece);

/// Returns the strides of a row-major tensor, in units of |unit|.
llvm::SmallVector<int64_t> denseStrides(llvm::ArrayRef<int64_t> dims, int64_t unit = 1);

/// Copies one region between dense row-major tensors of the given dims.
void movePiece(PieceAttr piece, const char *source, llvm::ArrayRef<int64_t> sourceDims, char *result,
               llvm::ArrayRef<int64_t> resultDims, int64_t elementBytes);

/// Returns the first two regions found that write a common element of the result. The regions must be known.
std::optional<std::pair<size_t, size_t>> findOverlap(llvm::ArrayRef<PieceAttr> pieces);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_IR_PIECES_H
