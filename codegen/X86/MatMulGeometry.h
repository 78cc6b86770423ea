//===- MatMulGeometry.h - Sizes of a matmul on register tiles ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// How a matmul is divided into register tiles, and where they read A and B. Computed once, before any code is emitted.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_X86_MATMULGEOMETRY_H
#define TESSERA_CODEGEN_X86_MATMULGEOMETRY_H

#include "codegen/X86/MicroShape.h"

namespace tessera::x86 {

/// The dims of a batch of matmuls [m, k] x [k, n].
struct MatMulDims {
  /// |op| has epilogue operands |extras|.
  MatMulDims(device::MatMulOp op, llvm::ArrayRef<TileExtra> extras);

  Dim batch, m; ///< symbolic only if B is packed
  int64_t k, n;
  llvm::SmallVector<Dim> batchDims; ///< dims of the batches of the result
  llvm::SmallVector<Dim> batchA;    ///< the same dims of A; 1: repeated
  llvm::SmallVector<Dim> batchB;    ///< the same dims of B

  /// Returns the rows and the batches at the likely sizes, at least 1.
  int64_t likelyRows() const { return std::max<int64_t>(1, likelyOf(m)); }
  int64_t likelyBatch() const { return std::max<int64_t>(1, likelyOf(batch)); }
};

/// How a launch tile copies its rows of A before register tiles read them.
enum class RowCopy {
  none,   ///< they are read in place
  plain,  ///< copied with another stride
  widen,  ///< f16 or bf16 copied as f32
  flip,   ///< signed bytes copied as value + 128
  halves, ///< each row of i16 copied as all low bytes followed by all high bytes
};

/// The rows of A as register tiles read them.
struct MatMulRows {
  TileKind kind;
  mlir::Type element;   ///< type in memory
  int64_t elementBytes; ///< bytes of an element in memory
  RowCopy copy = RowCopy::none;
  bool sharesSets = false;     ///< rows in place would share a few sets of L1
  int64_t rowBytes, stepBytes; ///< strides between rows and between K steps
  int64_t mostRows;            ///< rows of a whole register tile
  EvenSplit tiles;             ///< register tiles; of the likely rows if their number is symbolic
};

/// The columns of B as register tiles read them.
struct MatMulColumns {
  bool packed;   ///< packed at compile time
  bool inPlace;  ///< whole blocks of columns of an activation B are read in place
  int64_t chunk; ///< bytes of K that AMX tiles multiply at a time; 0: vector instructions multiply
  TileWeights weights;
  PanelSplit panels;
  /// The weights for whole row tiles of parts with many rows, if the number of rows is symbolic: as copies, while
  /// |weights| are widened in registers.
  std::optional<TileWeights> copies = {};
};

/// Sizes of a matmul on register tiles.
struct MatMulGeometry {
  MatMulGeometry(device::MatMulOp op, const X86Target &target, llvm::ArrayRef<TileExtra> extras);

  MatMulDims dims;
  MatMulColumns columns;
  MatMulRows rows;
  WorkSplit work;            ///< at the likely sizes; rowParts only if the number of rows is known
  int64_t piecesOfPart = 1;  ///< most register tiles in the rows of a launch tile
  int64_t prefetchLines = 0; ///< lines of the next panel that each tile prefetches
  int64_t copyAt = 0;        ///< offset of the copied rows of A in scratch, behind a panel
  int64_t scratchBytes = 0;

  /// Fewest row tiles of a launch tile for which a panel of narrow weights is copied.
  static constexpr int64_t kFewestPiecesOfCopies = 3;

  /// Returns the register tiles of the rows. If their number is symbolic, all but the last have rows.mostRows rows.
  Dim pieces() const { return dims.m.isKnown() ? Dim(rows.tiles.pieces) : tessera::ceilDiv(dims.m, rows.mostRows); }
  Dim rowParts() const { return dims.m.isKnown() ? Dim(work.rowParts) : tessera::ceilDiv(pieces(), piecesOfPart); }
  /// Returns the K steps.
  int64_t steps() const { return columns.weights.panels.steps(); }
  /// Returns the bytes of B.
  int64_t bBytes() const;
  /// Returns the rows of an AMX tile register. A smaller matmul must not read further rows. With halves, a tile has one
  /// window for the low and one for the high bytes.
  int64_t windowRows() const;
  /// Returns the columns that exist in the last block of the last panel.
  int64_t tailColumns() const { return dims.n % kBlock ? dims.n % kBlock : kBlock; }
  /// Returns true if register tiles read the |last| panel, or any other one, of an activation B in place.
  bool readsInPlace(bool last) const { return columns.inPlace && !(last && dims.n % kBlock); }
  /// Returns true if register tiles read B from a panel in scratch.
  bool hasPanelInScratch() const {
    return (!columns.packed && !readsInPlace(/*last=*/true)) || columns.weights.copied || columns.copies;
  }

private:
  void setRowCopy(device::MatMulOp op);
  void avoidSharedSets(device::MatMulOp op);
  void splitLaunch();
  void splitFewLikelyRows();
  void chooseCopies();
};

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_MATMULGEOMETRY_H
