//===- Depthwise.h - Convolutions of single channels ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_DEPTHWISE_H
#define TESSERA_CODEGEN_CUDA_DEPTHWISE_H

#include "codegen/Kernels/KernelBuilder.h"

namespace tessera::cuda {

/// Whether |op| is a convolution of each channel by itself, with constant weights of x's type or of bytes.
bool isDepthwise(mlir::Operation *op);

/// Emits |kb|'s op, a depthwise convolution of a channel-blocked x with weights packed for it: neighbouring threads
/// have neighbouring channels.
void emitDepthwise(kernels::KernelBuilder &kb);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_DEPTHWISE_H
