//===- TiledContraction.h - Contractions by tiles ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_CONTRACTION_TILEDCONTRACTION_H
#define TESSERA_CODEGEN_CUDA_CONTRACTION_TILEDCONTRACTION_H

#include "codegen/Cuda/Contraction/OperandIterator.h"

namespace tessera::cuda {

/// A convolution or matmul as rows of A times rows of B, both along K, for each index of a batch.
struct TiledContraction {
  Dim batch = 1, rows = 0;
  int64_t columns = 0;
  int64_t kBytes = 0;         ///< bytes of a row of A or B, a multiple of kChunk
  int64_t columnsWritten = 0; ///< |columns| and the padding of a channel-blocked result, which is written as zeros

  static TiledContraction of(mlir::Operation *op);
};

/// Emits |kb|'s op, which must have a tile (CudaDialect.h).
void emitTiledContraction(kernels::KernelBuilder &kb);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_CONTRACTION_TILEDCONTRACTION_H
