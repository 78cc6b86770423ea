//===- AmxTile.h - Contraction tiles in AMX registers -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// The AMX counterpart of the register tile of MicroKernel.h. A tile multiplies one or two windows of A, of up to 16
// rows each, by one or two blocks of columns of B. The rows of a window have a constant stride, so a window may contain
// rows that the tile does not need. Sums go through memory to the epilogue. For i16, the two windows are the low and
// the high bytes of the same rows.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_X86_AMXTILE_H
#define TESSERA_CODEGEN_X86_AMXTILE_H

#include "codegen/X86/MicroKernel.h"

namespace tessera::x86 {

/// Number of rows that an AMX tile register holds.
inline constexpr int64_t kWindowRows = 16;

/// The windows that cover the rows of a tile.
struct TileWindows {
  /// Computes the windows of |shape|, which must have chunks.
  explicit TileWindows(const TileShape &shape);

  llvm::SmallVector<int64_t, 2> offsets; ///< bytes from the A pointer to each window
  llvm::SmallVector<int64_t, 2> first;   ///< row of the tile with which each window begins
  bool whole = true;                     ///< every row of the windows is a row of the tile
  llvm::SmallVector<int64_t> places;     ///< index of each row of the tile among the windows' rows, kWindowRows each
};

/// Returns the bytes of the sums of a tile with |blocks| blocks of columns: [2][kWindowRows][blocks][16].
inline int64_t matrixSumBytes(int64_t blocks) { return kAmxTileRows * blocks * kBlockBytes; }

/// Byte offsets to which a tile stores its sums: of the first row of each window, and from one row to the next.
struct SumPlaces {
  llvm::SmallVector<int64_t, 2> windows;
  int64_t rowBytes;
};

/// Configures the AMX tiles at kb.b, before any emitAmxTile(): windows have |rows| rows, chunks |chunk| bytes.
void emitTileConfig(KernelBuilder &kb, int64_t rows, int64_t chunk);
/// Releases the AMX tiles after the last emitAmxTile(), so that context switches need not save them any more.
void emitTileRelease(KernelBuilder &kb);

/// As emitRegisterTile(), but stores the sums at |places| relative to |sums|. For i16, these are the separate sums of
/// the low and of the high bytes.
void emitAmxTile(KernelBuilder &kb, const TileShape &shape, const TileWindows &windows, mlir::Value a, mlir::Value b,
                 mlir::Value bias, mlir::Value table, mlir::Value prefetch, mlir::Value sums, const SumPlaces &places);

/// Copies |count| positions of |blocks| channel blocks, which are |planeBytes| apart at |from|, to |to| in
/// channels-last order with |depth| bytes per position; the rest of |depth| is filled with zeros. |sourceOf| maps a
/// position of the copy to one of the source; null is the identity. If |highAt| is not 0, channels are i16: their low
/// bytes (of size |elementBytes|) go to |to|, their high bytes |highAt| bytes behind.
void copyChannelsLast(KernelBuilder &kb, mlir::Value from, mlir::Value to, mlir::Value count, int64_t blocks,
                      int64_t planeBytes, int64_t elementBytes, int64_t depth, int64_t highAt = 0,
                      llvm::function_ref<mlir::Value(mlir::Value)> sourceOf = nullptr);

/// Copies the low bytes of |count| i16 to |to|, and the high bytes |highAt| bytes behind.
void splitWords(KernelBuilder &kb, mlir::Value from, mlir::Value to, int64_t count, int64_t highAt);

/// Adds 256 times the sums of the high bytes to those of the low bytes at |sums|, which have |blocks| blocks of
/// columns.
void addHighSums(KernelBuilder &kb, mlir::Value sums, int64_t blocks);

/// Copies |count| positions of |channels| <= kPixel planes, which are |planeBytes| apart, to |to| as pixels of kPixel
/// elements; missing channels become zero.
void copyPixels(KernelBuilder &kb, mlir::Value from, mlir::Value to, mlir::Value count, int64_t channels,
                int64_t planeBytes, int64_t elementBytes);

/// Returns a vector that alternates the elements of |x| and |y|.
mlir::Value interleave(KernelBuilder &kb, mlir::Value x, mlir::Value y);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_AMXTILE_H
