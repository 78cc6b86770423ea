//===- Transfers.h - What the DMA moves -----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_TRANSFERS_H
#define TESSERA_CODEGEN_NPU_TRANSFERS_H

#include "codegen/Npu/Stream.h"

namespace tessera::npu {

struct Transfer {
  TileView to, from;
  int64_t inRow = 0;  ///< elements of the source's row before the first one that is moved; channels are rows
  bool spare = false; ///< whole rows of the source may be read
};

/// Elements of a row that are read to have one of them: beyond, the others cost more than they spare.
inline constexpr int64_t kMostSpread = 16;

/// Cycles of the moves, each by a command of its own.
double directCycles(llvm::ArrayRef<Transfer> moves, const Chip &chip);

/// Whether places of one region differ at most in where they begin; and by how many bytes.
bool haveSameLayout(const TileView &a, const TileView &b);
uint64_t apart(const TileView &a, const TileView &b);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_TRANSFERS_H
