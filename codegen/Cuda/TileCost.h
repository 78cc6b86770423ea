//===- TileCost.h - How long a chip takes for tiles of a product -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_TILECOST_H
#define TESSERA_CODEGEN_CUDA_TILECOST_H

#include "codegen/Cuda/IR/CudaDialect.h"
#include "codegen/Cuda/TiledProduct.h"

namespace tessera::cuda {

/// What multiplies a product.
struct ProductRate {
  int64_t multiprocessors;
  double bytes; ///< multiply-adds in a cycle of a multiprocessor, times the bytes of a factor
};

/// Cycles of the chip for |product| by |tile|: of its busiest multiprocessor, or of one block behind another that waits
/// for memory. A model, compared with no card: copies from L2, passes over shared memory, the latency of a step and of
/// a block's begin and end are of the order that is published for an A100. Clearing the counters of tiles that blocks
/// share is a launch of the whole stream, and not in it.
double cyclesOf(const TiledProduct &product, TileAttr tile, const ProductRate &rate);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_TILECOST_H
