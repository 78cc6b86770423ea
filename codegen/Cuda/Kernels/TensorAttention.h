//===- TensorAttention.h - Attention on tensor cores ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_KERNELS_TENSORATTENTION_H
#define TESSERA_CODEGEN_CUDA_KERNELS_TENSORATTENTION_H

#include "codegen/Kernels/KernelBuilder.h"

namespace tessera::cuda {

/// Emits |kb|'s op, which must have an attention tile (CudaDialect.h).
void emitTensorAttention(kernels::KernelBuilder &kb);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_KERNELS_TENSORATTENTION_H
