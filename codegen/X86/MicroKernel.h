//===- MicroKernel.h - The register tile of a matrix product ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Convolution, matmul and the products inside Winograd are all walks of one register tile: a few rows
// of A against 16 * blocks columns of packed B. The tile's K loop is one inline-asm block, so that no
// register allocator can spill inside it; everything after it is MLIR on the accumulators.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_X86_MICROKERNEL_H
#define TESSERA_CODEGEN_X86_MICROKERNEL_H

#include "codegen/X86/IR/PackedWeights.h"
#include "codegen/X86/X86KernelBuilder.h"

namespace tessera::x86 {

/// Bytes of 32 bits for each column of a block.
inline constexpr int64_t kBlockBytes = kBlock * 4;

/// x / y rounded up, for x >= 0.
inline int64_t ceilDiv(int64_t x, int64_t y) { return (x + y - 1) / y; }

/// aheadBytes of a product with |weightBytes| of weights in |step|s: what does not stay in L2 beside other layers is
/// streamed, and hardware prefetching starts anew on every page. Wider steps than integers' come fast enough to be
/// slowed by it.
inline int64_t streamAhead(PackedStep step, int64_t weightBytes) {
  return isScaledStep(step) && weightBytes > 1024 * 1024 ? 4096 : 0;
}

/// What is multiplied. A K step takes 32 bits of every row of A: one f32, two bf16, or four 8-bit or two 16-bit
/// integers, whose exact products are summed in i32.
enum class TileKind {
  F32,
  U8,  ///< A unsigned
  S8,  ///< A signed; A + 128 is what is multiplied by PackedStep::i8x4
  S16, ///< A i16
  BF16 ///< A and B bf16, summed in f32: of each pair the second product first, each product and sum rounded once
};

inline bool sumsFloats(TileKind kind) { return kind == TileKind::F32 || kind == TileKind::BF16; }

/// Bytes of B in one K step of 16 columns.
inline int64_t stepBytesOfB(PackedStep step) { return kBlock * stepBits(step) / 8; }

/// Multiplications that one of f32 takes the time of.
inline int64_t productsPerStep(PackedStep step, int64_t chunk = 0) {
  constexpr int64_t kOfMatrixTile = 6; // of what its operands leave of eight
  if (chunk) {
    return productsPerStep(step) * kOfMatrixTile;
  }
  return step == PackedStep::i8x4 ? 4 : step == PackedStep::i16x2 || step == PackedStep::bf16x2 ? 2 : 1;
}

/// What a register tile reads. All offsets are in bytes.
struct TileShape {
  TileKind kind = TileKind::F32;
  PackedStep step = PackedStep::f32;    ///< what B holds; narrower ones than 32 bits are widened, which takes AVX2
  llvm::SmallVector<int64_t> rows;      ///< of each row's first element, from the A pointer
  int64_t blocks = 1;                   ///< 16-column blocks
  llvm::SmallVector<StepRun, 2> groups; ///< K, in order
  int64_t stepBytes = 4;                ///< from one K step to the next inside a group
  int64_t groupBytes = 0;               ///< from group to group; unused with an offset table
  int64_t panelRowBytes = 0;            ///< from one K step of B to the next
  int64_t prefetchLines = 0;            ///< lines at the prefetch pointer fetched into L2, spread over all of K
  int64_t aheadLines = 0;               ///< of a K step of B that are fetched so; 0: all up to the next step
  int64_t aheadBytes = 0;               ///< how far before its use B is fetched into the first level; 0: not at all
  int64_t scalesAt = 0;                 ///< of the scales [rows][16 blocks] of integers in B, from the B pointer
  int64_t runsPerScale = 0;             ///< K groups that share a row of scales; 0: none
  int64_t chunk = 0;                    ///< bytes of K that AMX multiplies at a time; 0: vectors do
  int64_t rowStride = 0;                ///< with a chunk: from one row of A to the next in a tile register
  int64_t windowRows = 0;               ///< with a chunk: rows of a tile register
  int64_t highAt = 0; ///< of i16 with a chunk: bytes from the low bytes of A to the high ones, which lie like them
  bool skips = false; ///< the table has pairs: of A, and how many K steps of B lie before the group that it leaves out
  int64_t tableBytes = 0; ///< where the tile's part of the table begins
  bool oddGroups = false; ///< of bf16: the last step of a group has one element of A, that behind it is not read

  int64_t steps() const;
};

/// Rows that fit the registers beside |blocks| blocks of columns; 0 when not even one does.
int64_t maxTileRows(const X86Target &target, int64_t blocks);

/// Vectors that make up one block.
inline int64_t vectorsPerBlock(const X86Target &target) { return kBlock / target.lanes(32); }

/// Emits bias + A * B at kb.b. |bias|: pointer to 16 * blocks f32 (i32), null for zero. |table|: pointer to the i32
/// byte offset of each group, null for an even stride. |prefetch| may be null. Returns the accumulators, row by row,
/// vectorsPerBlock() * blocks vectors each.
llvm::SmallVector<mlir::Value> emitRegisterTile(KernelBuilder &kb, const TileShape &shape, mlir::Value a, mlir::Value b,
                                                mlir::Value bias, mlir::Value table, mlir::Value prefetch);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_MICROKERNEL_H
