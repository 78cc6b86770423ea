//===- Copies.h - Pieces of copies as transfers -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_COPIES_H
#define TESSERA_CODEGEN_NPU_EMISSION_COPIES_H

#include "codegen/Npu/Emission/EmissionContext.h"
#include "codegen/Npu/Transfers.h"
#include "device_dialect/IR/Pieces.h"

namespace tessera::npu {

/// Where a piece goes and where it comes from: strides in elements, of the result and the source.
struct Walk {
  LoopNest nest;
  int64_t offsets[2] = {0, 0};
};
Walk walkOf(device::CopyOp op, device::PieceAttr piece);

/// Emits pieces of a copy.
llvm::Error emitPieces(device::CopyOp op, llvm::ArrayRef<unsigned> indices, EmissionContext &context);
/// Emits those of |moves| that together fill rows, where that is faster, and takes them out.
llvm::Error emitInterleaved(std::vector<Transfer> &moves, EmissionContext &context);
/// The same of those that take short parts of rows, or make up rows of such.
llvm::Error emitRows(std::vector<Transfer> &moves, EmissionContext &context);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_COPIES_H
