//===- ComposePieces.h - Composing copies of copies -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_TRANSFORMS_COMPOSEPIECES_H
#define TESSERA_DEVICE_DIALECT_TRANSFORMS_COMPOSEPIECES_H

#include "device_dialect/IR/DeviceMoveOps.h"
#include "device_dialect/IR/Pieces.h"

namespace tessera::device {

/// Returns what |outer|, a region that reads a copy made of |inner| regions, reads from the sources of that copy:
/// disjoint regions with the source numbers of |inner|. Elements that the inner copy fills are left out. Returns
/// nothing if the parts are not regions (incompatible steps, diagonals).
/// The regions must meet in whole symbolic dims.
std::optional<std::vector<SymbolicPiece>> composePieces(const SymbolicPiece &outer,
                                                        llvm::ArrayRef<SymbolicPiece> inner);
std::optional<std::vector<Piece>> composePieces(const Piece &outer, llvm::ArrayRef<Piece> inner);

/// Returns |piece|, which reads a tensor of dims |from|, as a region that reads the same bytes with dims |to|, if the
/// two differ only in dims of size 1; otherwise nothing.
std::optional<SymbolicPiece> readUnderDims(const SymbolicPiece &piece, Shape from, Shape to);

/// Returns true if |copy| keeps all bytes of its only source in place, so that it could be a reshape. Row-major types
/// only.
bool keepsByteOrder(CopyOp copy);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_TRANSFORMS_COMPOSEPIECES_H
