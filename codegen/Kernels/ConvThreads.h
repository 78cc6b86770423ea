//===- ConvThreads.h - Convolutions for many threads ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_CONVTHREADS_H
#define TESSERA_CODEGEN_KERNELS_CONVTHREADS_H

#include "codegen/Kernels/KernelBuilder.h"
#include "device_dialect/IR/DeviceComputeOps.h"

namespace tessera::kernels {

/// Emits |conv|, on non-empty row-major tensors, for a target on which each tile is one thread.
void emitConvByThreads(KernelBuilder &kb, device::ConvOp conv);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_CONVTHREADS_H
