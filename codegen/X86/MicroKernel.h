//===- MicroKernel.h - The register tile of a matmul ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Convolutions, matmuls and the matmuls inside Winograd all iterate over one register tile: a few rows of A times
// 16 * blocks columns of packed B. The K loop of the tile is one inline-asm block, so the register allocator cannot
// spill inside it; everything after it is MLIR on the accumulators.
#ifndef TESSERA_CODEGEN_X86_MICROKERNEL_H
#define TESSERA_CODEGEN_X86_MICROKERNEL_H

#include "codegen/X86/IR/PackedWeights.h"
#include "codegen/X86/X86KernelBuilder.h"

namespace tessera::x86 {

/// Bytes of 32-bit numbers, one for each column of a block.
inline constexpr int64_t kBlockBytes = kBlock * 4;

/// Returns x / y rounded up, for x >= 0.
inline int64_t ceilDiv(int64_t x, int64_t y) { return (x + y - 1) / y; }

/// Returns TileShape::aheadBytes for a contraction with |weightBytes| of weights in K steps of |step|. Weights that do
/// not stay in L2 are streamed, and hardware prefetching restarts on every page. Only integer weights are prefetched:
/// wider steps arrive fast enough that prefetching would slow them down.
inline int64_t streamAhead(PackedStep step, int64_t weightBytes) {
  return isScaledStep(step) && weightBytes > 1024 * 1024 ? 4096 : 0;
}

/// Element types of a contraction. A K step takes 32 bits of every row of A: one f32, two bf16, or four 8-bit or two
/// 16-bit integers, whose exact products are summed in i32.
enum class TileKind {
  F32,
  U8,  ///< A unsigned
  S8,  ///< A signed; PackedStep::i8x4 multiplies A + 128
  S16, ///< A i16
  BF16 ///< A and B bf16, summed in f32: the second product of each pair first, each product and sum rounded once
};

inline bool sumsFloats(TileKind kind) { return kind == TileKind::F32 || kind == TileKind::BF16; }

/// Returns the bytes of B in one K step of 16 columns.
inline int64_t stepBytesOfB(PackedStep step) { return kBlock * stepBits(step) / 8; }

/// Returns the number of multiplications that take the time of one of f32.
inline int64_t productsPerStep(PackedStep step, int64_t chunk = 0) {
  constexpr int64_t kOfAmxTile = 6; // of eight; loading the operands takes the rest
  if (chunk) {
    return productsPerStep(step) * kOfAmxTile;
  }
  return step == PackedStep::i8x4 ? 4 : step == PackedStep::i16x2 || step == PackedStep::bf16x2 ? 2 : 1;
}

/// The operands of a register tile. All offsets and strides are in bytes.
struct TileShape {
  TileKind kind = TileKind::F32;
  PackedStep step = PackedStep::f32;    ///< K step of B; steps of less than 32 bits are widened, which requires AVX2
  llvm::SmallVector<int64_t> rows;      ///< offset of each row's first element from the A pointer
  int64_t blocks = 1;                   ///< 16-column blocks
  llvm::SmallVector<StepRun, 2> groups; ///< the K groups, in order
  int64_t stepBytes = 4;                ///< stride of A between K steps inside a group
  int64_t groupBytes = 0;               ///< stride of A between groups; unused with an offset table
  bool openGroups = false;              ///< that stride is known at run time only
  bool openSteps = false;               ///< the number of K steps is known at run time only; |groups| has one group,
                                        ///< which the steps repeat, whole and in part
  int64_t panelRowBytes = 0;            ///< stride of B between K steps
  int64_t prefetchLines = 0;            ///< lines at the prefetch pointer fetched into L2, spread over all of K
  int64_t aheadLines = 0;               ///< lines of each K step of B to prefetch into L1; 0: all up to the next step
  int64_t aheadBytes = 0;               ///< distance of that prefetch ahead of the use of B; 0: no prefetch into L1
  int64_t scalesAt = 0;                 ///< offset of the scales [rows][16 blocks] of integers from the B pointer
  int64_t runsPerScale = 0;             ///< K groups that share a row of scales; 0: no scales
  int64_t chunk = 0;                    ///< bytes of K that AMX multiplies at a time; 0: vector instructions multiply
  int64_t rowStride = 0;                ///< with a chunk: stride of A between the rows of a tile register
  int64_t windowRows = 0;               ///< with a chunk: rows of a tile register
  int64_t highAt = 0; ///< i16 with a chunk: offset of A's high bytes, which have the layout of its low bytes
  bool skips = false; ///< table entries are pairs: offset of A, and the number of K steps of B to skip before the group
  int64_t tableBytes = 0; ///< offset of the tile's part of the table
  bool oddGroups = false; ///< bf16: the last step of a group has one element of A; the one behind it is not read

  int64_t steps() const;
};

/// Returns the number of rows that fit the registers with |blocks| blocks of columns; 0 if not even one fits.
int64_t maxTileRows(const X86Target &target, int64_t blocks);

/// Returns the number of vectors that form one block.
inline int64_t vectorsPerBlock(const X86Target &target) { return kBlock / target.lanes(32); }

/// Emits bias + A * B at kb.b. |bias|: pointer to 16 * blocks f32 (or i32), null for zero. |table|: pointer to the i32
/// byte offset of each group, null for a constant stride; with shape.openGroups the stride as a pointer, with
/// shape.openSteps the number of steps as a pointer. |prefetch| may be null. Returns the accumulators row by row, with
/// vectorsPerBlock() * blocks vectors each.
llvm::SmallVector<mlir::Value> emitRegisterTile(KernelBuilder &kb, const TileShape &shape, mlir::Value a, mlir::Value b,
                                                mlir::Value bias, mlir::Value table, mlir::Value prefetch);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_MICROKERNEL_H
