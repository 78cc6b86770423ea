//===- Depthwise.h - Depthwise convolutions ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_KERNELS_DEPTHWISE_H
#define TESSERA_CODEGEN_CUDA_KERNELS_DEPTHWISE_H

#include "codegen/Kernels/KernelBuilder.h"

namespace tessera::cuda {

/// Returns true if |op| is a depthwise convolution, with a multiplier of 1, whose constant weights have x's type or are
/// 8-bit integers like x.
bool isDepthwise(mlir::Operation *op);

/// Emits |kb|'s op, a depthwise convolution of a channel-blocked x with weights in PackedOrder::depthwise. Neighbouring
/// threads compute neighbouring channels.
void emitDepthwise(kernels::KernelBuilder &kb);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_KERNELS_DEPTHWISE_H
