//===- Gemv.h - Matmuls of few rows by integer weights ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_KERNELS_GEMV_H
#define TESSERA_CODEGEN_CUDA_KERNELS_GEMV_H

#include "codegen/Kernels/KernelBuilder.h"

namespace tessera::cuda {

/// Emits |kb|'s op, which must have cuda.gemv and packed weights (CudaDialect.h).
void emitGemv(kernels::KernelBuilder &kb);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_KERNELS_GEMV_H
