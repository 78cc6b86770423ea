//===- TileCost.h - Cost model of the tiles of a contraction ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_CONTRACTION_TILECOST_H
#define TESSERA_CODEGEN_CUDA_CONTRACTION_TILECOST_H

#include "codegen/Cuda/Contraction/TiledContraction.h"
#include "codegen/Cuda/IR/CudaDialect.h"

namespace tessera::cuda {

/// The multiplication rate of a GPU for one element type.
struct ContractionRate {
  int64_t multiprocessors;
  double bytes; ///< multiply-adds per cycle of a multiprocessor, times the bytes of an operand's element
};

/// Returns the cycles that the GPU takes for |contraction| with |tile|: the time of the busiest multiprocessor, or the
/// time of consecutive blocks that wait for memory. The model was not compared with a GPU; its constants (copies from
/// L2, passes over shared memory, the latency of a step, and of a block's start and end) have the magnitude published
/// for an A100. It does not include the launch that clears the counters of shared tiles, which is one per stream.
double cyclesOf(const TiledContraction &contraction, TileAttr tile, const ContractionRate &rate);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_CONTRACTION_TILECOST_H
