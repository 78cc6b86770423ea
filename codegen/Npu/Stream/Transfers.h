//===- Transfers.h - DMA transfers ------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_STREAM_TRANSFERS_H
#define TESSERA_CODEGEN_NPU_STREAM_TRANSFERS_H

#include "codegen/Npu/Stream/CommandStream.h"

namespace tessera::npu {

/// A move of a tensor by the DMA.
struct Transfer {
  TileView to, from;
  int64_t inRow = 0; ///< offset of the first moved element within its row of the source, in elements; rows are channels
  bool spare = false; ///< whole rows of the source may be read
};

/// Maximum number of elements of a row to read for each one that is needed. Beyond, reading the unneeded ones costs
/// more than it saves.
inline constexpr int64_t kMostSpread = 16;

/// Returns the cycles of moving each transfer by its own command.
double directCycles(llvm::ArrayRef<Transfer> moves, const Chip &chip);

/// Returns true if views have the same region, shape and strides.
bool haveSameLayout(const TileView &a, const TileView &b);
/// Returns the distance of the first bytes of two views.
uint64_t apart(const TileView &a, const TileView &b);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_STREAM_TRANSFERS_H
