// SPDX-License-Identifier: Apache-2.0
//===- QueryTiles.h - Rows of q as launch and register tiles ----*- C++ -*-===//
#ifndef TESSERA_CODEGEN_X86_QUERYTILES_H
#define TESSERA_CODEGEN_X86_QUERYTILES_H

#include "codegen/Kernels/AttentionShape.h"
#include "codegen/X86/MicroShape.h"

namespace tessera::x86 {

/// The split of attention's rows of q. A launch tile takes a part of the rows of one matrix, in groups of as many rows
/// as a register tile holds.
class QueryTiles {
public:
  /// |largest|: most rows of a register tile.
  QueryTiles(const kernels::AttentionShape &shape, int64_t largest);

  /// Returns the index space of the launch tiles: the batch dims, then the parts of the rows.
  llvm::SmallVector<Dim> space() const;
  /// Returns the largest number of rows of a group.
  int64_t mostRows() const { return isOpen() ? largest : rows.length(0); }
  /// Emits the groups of |part|. |body| gets the first row and the number of rows.
  void forGroups(mlir::Value part, llvm::function_ref<void(mlir::Value first, mlir::Value count)> body) const;
  /// Emits the register tiles of a group of |count| rows. |body| gets the first row in the group and the tile's rows.
  void forTiles(mlir::Value count, llvm::function_ref<void(mlir::Value first, int64_t rows)> body) const;

private:
  bool isOpen() const { return !shape.queries.isKnown(); }

  const kernels::AttentionShape &shape;
  KernelBuilder &kb;
  int64_t largest, likely; ///< |likely|: number of rows
  EvenSplit rows;          ///< of known rows
  int64_t parts;           ///< of the likely rows
  int64_t rowsOfPart;      ///< of symbolic rows
};

/// Packs rows of k transposed into panels: to[panel][e][key] = from[first key of the panel + key][e], 32-bit elements.
struct KeyPanels {
  KernelBuilder &kb;
  int64_t width;     ///< keys of a panel
  int64_t depth;     ///< elements of a key
  int64_t rows;      ///< of a panel, at least |depth|
  int64_t keyStride; ///< elements between the rows of k
  mlir::Type element;
  mlir::Value from, to;

  /// Packs |panels| whole panels from the first one on.
  void packWhole(Dim panels) const;
  /// Packs the |keys| keys, fewer than a panel holds, of panel |panel|.
  void packTail(Dim panel, Dim keys) const;

private:
  void move(Dim panels, Dim keys, mlir::Value from, mlir::Value to) const;
};

/// Returns true if AMX tiles may multiply the rows of q: there are enough of them, and no number of rows or
/// keys is symbolic.
bool hasAmxRows(const kernels::AttentionShape &shape);

/// Sets the K steps of a register tile with contiguous steps of A.
void setSteps(TileShape &shape, Dim steps);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_QUERYTILES_H
