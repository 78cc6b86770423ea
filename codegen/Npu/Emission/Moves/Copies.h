//===- Copies.h - Regions of copies as DMA transfers ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_MOVES_COPIES_H
#define TESSERA_CODEGEN_NPU_EMISSION_MOVES_COPIES_H

#include "codegen/Npu/Emission/EmissionContext.h"
#include "codegen/Npu/Stream/Transfers.h"
#include "device_dialect/IR/Pieces.h"

namespace tessera::npu {

/// Addresses of the elements of a copy's piece. Strides and offsets are in elements, of the result, then of the source.
struct Walk {
  LoopNest nest;
  int64_t offsets[2] = {0, 0};
};
/// Returns the walk over one piece of a copy.
Walk walkOf(device::CopyOp op, device::PieceAttr piece);

/// Emits the pieces of a copy that |indices| lists.
llvm::Error emitPieces(device::CopyOp op, llvm::ArrayRef<unsigned> indices, EmissionContext &context);
/// Emits groups of |moves| that together fill whole rows of a result, if assembling the rows in local memory is faster.
/// Removes the emitted moves from |moves|.
llvm::Error emitInterleaved(std::vector<Transfer> &moves, EmissionContext &context);
/// Emits moves that read short parts of rows, or that together make up rows, if going through local memory is faster.
/// Removes the emitted moves from |moves|.
llvm::Error emitRows(std::vector<Transfer> &moves, EmissionContext &context);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_MOVES_COPIES_H
