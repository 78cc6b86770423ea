//===- ConvLoops.h - Loops of a convolution over register tiles ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_CONVLOOPS_H
#define TESSERA_CODEGEN_X86_CONVLOOPS_H

#include "codegen/X86/ConvGeometry.h"

namespace tessera::x86 {

/// A launch tile: row steps and panels of one group of one image.
struct ConvPart {
  mlir::Value image, group, imageGroup;
  mlir::Value rowBegin, rowEnd;
  mlir::Value panelBegin, panelEnd;
};

/// Emits the loops of a direct convolution over panels, row steps and register tiles of a launch tile.
class ConvLoops {
public:
  /// Adds what depends on the instructions to ConvGeometry::tileShape() of a register tile in the given segments.
  using CompleteShape = std::function<void(TileShape &shape, SegmentIndex at)>;
  /// |offsets|: byte offset of each K group of A; empty for a constant stride.
  ConvLoops(KernelBuilder &kb, device::ConvOp op, const ConvGeometry &g, llvm::ArrayRef<TileExtra> extras,
            llvm::ArrayRef<int32_t> offsets, CompleteShape complete);

  /// Returns the launch tile with the index |tile|.
  ConvPart partOf(mlir::Value tile) const;
  /// Emit the tiles of |part|. A reads the input in place; or the rows that |copy| copies to scratch, which begin at
  /// the given row of the input (may be negative); or positions of a flat row that |copy| copies, |rowSteps| row steps
  /// at a time.
  void emitInPlace(const ConvPart &part);
  void emitCopied(const ConvPart &part, llvm::function_ref<void(mlir::Value firstRow)> copy);
  void emitFlat(const ConvPart &part, int64_t rowSteps,
                llvm::function_ref<void(mlir::Value begin, mlir::Value end)> copy);

private:
  /// Row steps of a launch tile.
  struct Rows {
    mlir::Value begin, end;
    mlir::Value origin; ///< row step whose first row is at the A pointer
  };
  /// A panel of some row steps.
  struct Panel {
    const ConvPart &part;
    const Rows &rows;
    TileFunctions::Pointers base;
    bool last;
  };
  /// Register tiles that are neighbours in |rows| rows of one segment.
  struct Tiles {
    mlir::Value step;
    int64_t rows;
    EvenSplit split;
    int64_t first;  ///< column of the result at which they begin
    int64_t before; ///< number of tiles of the row before them
    SegmentIndex segment;
  };
  TileFunctions::Pointers pointersOf(const ConvPart &part, mlir::Value a) const;
  mlir::Value positionOf(mlir::Value rowStep) const;
  void emitPanels(const ConvPart &part, const Rows &rows, const TileFunctions::Pointers &base);
  void emitPanel(Panel panel, mlir::Value index);
  void movePointers(TileFunctions::Pointers &base, mlir::Value panel, bool last);
  void emitRows(const Panel &panel, mlir::Value begin, mlir::Value end, int64_t rows);
  void emitRow(const Panel &panel, const Tiles &tiles, mlir::Value begin, mlir::Value end);
  void emitOpenRow(const Panel &panel, const Tiles &tiles, mlir::Value first, mlir::Value positions);
  void emitTiles(const Panel &panel, const Tiles &tiles, mlir::Value begin, mlir::Value end, int64_t width);
  /// |columnOf| returns the column of the result at which a tile begins.
  void emitTiles(const Panel &panel, const Tiles &tiles, mlir::Value begin, mlir::Value end, int64_t width,
                 llvm::function_ref<mlir::Value(mlir::Value tile)> columnOf);
  TileResult resultOf(int64_t rows, int64_t width, bool last) const;

  KernelBuilder &kb;
  const bool hasBias;
  const ConvGeometry &g;
  llvm::ArrayRef<TileExtra> extras;
  CompleteShape complete;
  TileFunctions functions;
};

/// Copies the input rows of |part|, which begin at |firstRow|, to scratch. |copyPositions| copies neighbouring
/// positions of a row; |fill| fills bytes of the border.
void copyPaddedRows(KernelBuilder &kb, const ConvGeometry &g, const ConvPart &part, mlir::Value firstRow,
                    llvm::function_ref<void(mlir::Value from, mlir::Value to, mlir::Value count)> copyPositions,
                    llvm::function_ref<void(mlir::Value to, Dim bytes)> fill);

/// Fills |bytes| bytes, |at| bytes behind |to|, with |value|; |bytes| may be 0 or less.
void fillBytes(KernelBuilder &kb, mlir::Value to, Dim bytes, int8_t value, int64_t at = 0);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_CONVLOOPS_H
