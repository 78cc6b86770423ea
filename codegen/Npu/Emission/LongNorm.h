//===- LongNorm.h - Normalisation of rows larger than a lane ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_LONGNORM_H
#define TESSERA_CODEGEN_NPU_EMISSION_LONGNORM_H

#include "codegen/Npu/Tiler.h"
#include "device_dialect/IR/DeviceComputeOps.h"

namespace tessera::npu {

/// What a norm computes row by row, in the order of roundings that numerics_float.h and the reference have.
struct NormPrograms {
  Instructions mean, centre, factor, finish;

  NormPrograms(device::NormOp op, int64_t size);
};

/// A norm whose rows do not fit a lane. Each row is read piece by piece, once for the mean, once for the squares of
/// what is left of it and once for the result; the 16 partial sums that OrderedSum has stay in the lane between pieces,
/// so that the bits are those of a row in one piece.
struct LongNorm {
  const NormPrograms &programs;
  bool isRms;
  const TileView &x;
  llvm::ArrayRef<TileView> targets;    ///< where the result goes, all of the first one's shape
  llvm::ArrayRef<TileView> parameters; ///< scale, bias: the same row for all
  Stream &stream;
  const Chip &chip;

  std::vector<Tile> make() const;
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_LONGNORM_H
