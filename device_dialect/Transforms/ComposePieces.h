//===- ComposePieces.h - A copy of a copy as one copy -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_TRANSFORMS_COMPOSEPIECES_H
#define TESSERA_DEVICE_DIALECT_TRANSFORMS_COMPOSEPIECES_H

#include "device_dialect/IR/DeviceMoveOps.h"
#include "device_dialect/IR/Pieces.h"

namespace tessera::device {

/// What |outer|, a piece that reads a copy made of |inner| pieces, moves out of the sources of that copy: disjoint
/// pieces with the source numbers of |inner|. They may leave elements of |outer| out, which the inner copy fills.
/// Nothing when the parts are no pieces (steps that do not meet, diagonals).
std::optional<std::vector<Piece>> composePieces(const Piece &outer, llvm::ArrayRef<Piece> inner);

/// |piece|, which reads a tensor of dims |from|, as a piece that reads the same bytes under dims |to|, where the two
/// differ only in dims of size 1. Nothing when they differ otherwise.
std::optional<Piece> readUnderDims(const Piece &piece, llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

/// Whether |copy| puts all bytes of its only source where they were: it could be a reshape. Row-major types only.
bool keepsByteOrder(CopyOp copy);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_TRANSFORMS_COMPOSEPIECES_H
