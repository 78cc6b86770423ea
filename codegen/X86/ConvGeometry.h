//===- ConvGeometry.h - Sizes of a convolution on register tiles ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// As a matmul, a convolution has output positions as rows and output channels as columns; K runs over the input
// channels and kernel taps in the order of the packed weights. The types below say how positions and channels are
// divided into register tiles and where A is read. They are computed once, before any code is emitted.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_X86_CONVGEOMETRY_H
#define TESSERA_CODEGEN_X86_CONVGEOMETRY_H

#include "codegen/X86/MicroShape.h"

namespace tessera::x86 {

/// The data that A reads: the input in place, or a copy of a part of it in scratch.
struct ConvInput {
  bool blocked;             ///< the input has channel blocks; otherwise it is row-major
  int64_t lanes;            ///< elements of one position of the input in memory
  int64_t planes;           ///< planes of one group of the data that A reads: channel blocks, channels, or one
  int64_t positionBytes;    ///< bytes of one position as it is multiplied
  bool copied;              ///< A reads a copy
  Dim pitch = 0, plane = 0; ///< bytes of a row and of a plane of the data that A reads; a flat copy has no rows
  Dim positions = 0;        ///< positions in a row of a copy; a row of a plane of symbolic width is longer
  int64_t copyBytes = 0;    ///< scratch bytes of the copy
};

/// The positions of a result as register tiles.
struct ConvTiling {
  bool flat;             ///< all positions form one row, because a 1x1 kernel does not mix rows
  Dim height, width;     ///< positions: those of the result, or 1 and all of them
  int64_t stepW;         ///< positions of A between neighbouring positions of a row
  int64_t mostPositions; ///< positions of a whole register tile
  EvenSplit columns;     ///< register tiles of one row; of the likely width if the width is symbolic
  int64_t tileH = 1;     ///< rows of one register tile; 1 if a size is symbolic
  Dim rowSteps;          ///< register tiles of the only row, else groups of tileH rows

  ConvTiling(const ConvShape &s, bool flat, int64_t mostPositions);
  /// Gives a register tile |rows| rows if it holds whole rows.
  void stackRows(int64_t rows);
  bool isOneRow() const { return height.is(1); }
};

/// A run of positions along a dim of the result at which the same taps, [first, last), lie inside the image.
struct BorderSegment {
  int64_t begin, end, first, last;
  bool unseen = false; ///< no tap lies inside the image
  int64_t length() const { return end - begin; }
  int64_t taps() const { return last - first; }
};

/// The segments of rows and columns. Register tiles do not cross segments.
struct BorderSegments {
  bool skip; ///< tiles skip taps that see only padding; otherwise there is one segment of rows and one of columns
  llvm::SmallVector<BorderSegment> rows, columns;
};

/// One segment of rows and one of columns.
struct SegmentIndex {
  size_t row = 0, column = 0;
};

/// Sizes of a direct convolution on register tiles.
struct ConvGeometry {
  /// Computes all sizes but those of launch tiles, for register tiles of one row. |copied|: A reads a copy of the
  /// input. |flat|: all positions form one row.
  ConvGeometry(device::ConvOp op, const X86Target &target, bool copied, bool flat);

  ConvShape s;
  PackingAttr packing;
  TileWeights weights;
  PanelSplit panels; ///< output channels of one group
  ConvInput input;
  ConvTiling tiling;
  BorderSegments segments;
  WorkSplit work;            ///< valid after splitLaunch()
  int64_t prefetchLines = 0; ///< lines of the next panel that each tile prefetches; valid after splitLaunch()

  /// Divides the convolution into launch tiles, when input.copied, tiling and segments are final.
  void splitLaunch();
  /// Decide how much of the input A reads at a time, after splitLaunch(): all of it in place; a copy of |rowSteps| row
  /// steps of a flat row; or a copy of the rows that a launch tile needs, |positions| each. Register tiles read up to
  /// |behind| bytes beyond a copy. Rows of a copy are a constant number of bytes apart, so that the offsets of taps are
  /// constants at all sizes.
  void readInPlace();
  void copyFlat(int64_t rowSteps, int64_t behind = 0);
  void copyRows(Dim positions, int64_t behind = 0);

  Dim launchTiles() const { return s.images * s.groups * rowParts() * work.panelParts; }
  /// Returns the number of parts of the row steps. Parts of a symbolic number of row steps have rowStepsOfPart() each.
  Dim rowParts() const {
    return tiling.rowSteps.isKnown() ? Dim(work.rowParts) : tessera::ceilDiv(tiling.rowSteps, rowStepsOfPart());
  }
  /// Returns the most row steps of a part.
  int64_t rowStepsOfPart() const { return ceilDiv(likelyRowSteps(), work.rowParts); }
  int64_t likelyRowSteps() const { return std::max<int64_t>(1, likelyOf(tiling.rowSteps)); }
  /// Returns the K steps of the convolution.
  int64_t steps() const { return weights.panels.steps(); }
  /// Returns the bytes of the weights of one group.
  int64_t weightBytes() const;
  /// Returns the bytes of a panel that is widened in scratch, behind the copy of the input.
  int64_t widenedBytes() const { return weights.copied ? steps() * panels.blocks * weights.tileStepBytes : 0; }
  int64_t scratchBytes() const { return input.copyBytes + widenedBytes(); }
  /// Return the bytes of one position, of one plane and of one group of the input in memory.
  int64_t sourceBytes() const { return s.xBytes * input.lanes; }
  Dim sourcePlane() const { return s.h * s.w * sourceBytes(); }
  Dim sourceGroup() const { return (input.blocked ? s.icBlocks() : s.groupC()) * sourcePlane(); }
  /// Returns the register tiles of one row of positions.
  int64_t tilesPerRow() const;
  /// Returns the register tile of |rows| x |width| positions and |blocks| blocks of channels.
  TileShape tileShape(int64_t rows, int64_t width, int64_t blocks) const;
  /// Returns the byte offset of a tap from the first one, in plane |plane| of the data that A reads.
  int64_t tapOffset(int64_t plane, int64_t y, int64_t x) const {
    return plane * input.plane.value() + y * s.dilationH * input.pitch.value() + x * s.dilationW * input.positionBytes;
  }
  /// Returns the byte offset of each K group of A, in order; a kernel row consists of |groupsPerRow| K groups. Returns
  /// none for a flat row, whose K groups have a constant stride.
  llvm::SmallVector<int32_t> groupOffsets(int64_t groupsPerRow) const;

private:
  int64_t prefetchedLines() const;
};

//--- orders read by vector instructions: blocks, taps and apart ---

/// Returns how many output rows one register tile of vector instructions can hold.
int64_t rowsOfVectorTile(const ConvGeometry &g);
/// Returns the positions in a row of the copy that vector instructions read.
Dim positionsOfVectorRow(const ConvGeometry &g);
/// Returns the K groups of a kernel row: in row-major images, neighbouring taps form one.
int64_t groupsOfVectorRow(const ConvGeometry &g);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_CONVGEOMETRY_H
