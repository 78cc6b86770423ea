//===- MatrixTile.h - Products on the tile registers of AMX -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// The same tile of a product as MicroKernel.h has, but on AMX: one or two windows of A, of up to 16 rows each, against
// one or two blocks of columns. A window's rows are an even distance apart, so it may hold rows in between that nobody
// asked for. Sums go through memory to the epilogue. Of i16 the two windows are the low and the high bytes of the same
// rows.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_X86_MATRIXTILE_H
#define TESSERA_CODEGEN_X86_MATRIXTILE_H

#include "codegen/X86/MicroKernel.h"

namespace tessera::x86 {

/// Rows that a tile register of AMX holds.
inline constexpr int64_t kWindowRows = 16;

/// Where the rows of a tile are found.
struct TileWindows {
  /// Of a |shape| with chunks.
  explicit TileWindows(const TileShape &shape);

  llvm::SmallVector<int64_t, 2> offsets; ///< bytes from the A pointer to each window
  llvm::SmallVector<int64_t, 2> first;   ///< row of the tile that each window begins with
  bool whole = true;                     ///< no window has a row that the tile has not
  llvm::SmallVector<int64_t> places;     ///< of each row of the tile among the windows' rows, kWindowRows to a window
};

/// Bytes of the sums of a tile with |blocks| blocks of columns: [2][kWindowRows][blocks][16].
inline int64_t matrixSumBytes(int64_t blocks) { return kMatrixTileRows * blocks * kBlockBytes; }

/// Where the rows of each window's sums go, in bytes: the first one, and from one to the next.
struct SumPlaces {
  llvm::SmallVector<int64_t, 2> windows;
  int64_t rowBytes;
};

/// Says to the processor at kb.b, before any emitMatrixTile(), that windows have |rows| rows and chunks |chunk| bytes.
void emitTileConfig(KernelBuilder &kb, int64_t rows, int64_t chunk);
/// Behind the last one: the registers need not be saved any more.
void emitTileRelease(KernelBuilder &kb);

/// As emitRegisterTile(), with the sums (of i16 those of the low and of the high bytes) written to |places| behind
/// |sums|.
void emitMatrixTile(KernelBuilder &kb, const TileShape &shape, const TileWindows &windows, mlir::Value a, mlir::Value b,
                    mlir::Value bias, mlir::Value table, mlir::Value prefetch, mlir::Value sums,
                    const SumPlaces &places);

/// Copies |count| positions of |blocks| channel blocks, |planeBytes| apart at |from|, to |to| with the channels of a
/// position beside each other, |depth| bytes from one position to the next; what is left of |depth| becomes zero.
/// |sourceOf|: which position becomes the i-th one; null for the i-th. |highAt|: 0, or channels are i16 whose low
/// bytes, of which |elementBytes| is the size, are copied there and the high ones so far behind.
void copyChannelsLast(KernelBuilder &kb, mlir::Value from, mlir::Value to, mlir::Value count, int64_t blocks,
                      int64_t planeBytes, int64_t elementBytes, int64_t depth, int64_t highAt = 0,
                      llvm::function_ref<mlir::Value(mlir::Value)> sourceOf = nullptr);

/// Copies the low bytes of |count| i16 to |to|, and the high ones to |highAt| bytes behind.
void splitWords(KernelBuilder &kb, mlir::Value from, mlir::Value to, int64_t count, int64_t highAt);

/// Adds 256 times the sums of the high bytes to those of the low ones, |blocks| blocks, at |sums|.
void addHighSums(KernelBuilder &kb, mlir::Value sums, int64_t blocks);

/// Copies |count| positions of |channels| planes, at most kPixel, |planeBytes| apart, to |to| as pixels of kPixel
/// elements; those of missing channels become zero.
void copyPixels(KernelBuilder &kb, mlir::Value from, mlir::Value to, mlir::Value count, int64_t channels,
                int64_t planeBytes, int64_t elementBytes);

/// The elements of |x| and |y| in turns.
mlir::Value interleave(KernelBuilder &kb, mlir::Value x, mlir::Value y);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_MATRIXTILE_H
