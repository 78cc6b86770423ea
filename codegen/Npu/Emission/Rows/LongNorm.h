//===- LongNorm.h - Normalisation of rows larger than a lane ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_ROWS_LONGNORM_H
#define TESSERA_CODEGEN_NPU_EMISSION_ROWS_LONGNORM_H

#include "codegen/Npu/Contraction/Tiler.h"
#include "device_dialect/IR/DeviceComputeOps.h"

namespace tessera::npu {

/// Programs of the steps of a norm, which round in the same order as numerics_float.h and the reference.
struct NormPrograms {
  Instructions mean, centre, factor, finish;

  NormPrograms(device::NormOp op, int64_t size);
};

/// A norm whose rows do not fit a lane. Each row is read in segments, three times: for the mean, for the squares of the
/// centred elements, and for the result. The 16 partial sums of OrderedSum stay in the lane between segments, so the
/// result has the same bits as that of an undivided row.
struct LongNorm {
  const NormPrograms &programs;
  bool isRms;
  const TileView &x;
  llvm::ArrayRef<TileView> targets;    ///< receive the result; all have the shape of the first
  llvm::ArrayRef<TileView> parameters; ///< scale and bias, the same for all rows
  CommandStream &stream;
  const Chip &chip;

  std::vector<Tile> make() const;
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_ROWS_LONGNORM_H
