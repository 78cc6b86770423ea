//===- BlockWeights.h - Weights of a block matmul as constants --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_CONTRACTION_BLOCKWEIGHTS_H
#define TESSERA_CODEGEN_NPU_EMISSION_CONTRACTION_BLOCKWEIGHTS_H

#include "codegen/Npu/Emission/Contraction/QuantizedRows.h"
#include "device_dialect/IR/DeviceBlockOps.h"
#include "llvm/Support/Error.h"

namespace tessera::npu {

/// The constants of a block matmul, one column after another. Columns are added until their number is a multiple of the
/// lanes, and entries until all blocks are whole; the added weights are 0. Scales and minima are f16 if all of them are
/// f16 numbers; the DMA converts them to f32.
class BlockWeights {
public:
  /// Adds the constants to the stream, or finds them if another schedule has added them.
  static llvm::Expected<BlockWeights> place(device::BlockMatMulOp op, const BlockSizes &sizes, CommandStream &stream);

  /// Loads |columns| columns, a multiple of the lanes. Returns the weights (i8) as 1, columns, 1, entries and the
  /// numbers (f32) as 1, columns, 1, steps: the scales of all blocks, then the minima.
  std::pair<TileView, TileView> load(uint32_t first, uint32_t columns, LocalBudget &localBudget, Tile &tile,
                                     const Chip &chip) const;

private:
  TileView weights, numbers; ///< outside
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_CONTRACTION_BLOCKWEIGHTS_H
