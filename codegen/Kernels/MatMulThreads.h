//===- MatMulThreads.h - Products on machines of many threads ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_MATMULTHREADS_H
#define TESSERA_CODEGEN_KERNELS_MATMULTHREADS_H

#include "codegen/Kernels/KernelBuilder.h"
#include "device_dialect/IR/DeviceComputeOps.h"

namespace tessera::kernels {

/// Emits |matmul| of row-major tensors, none of them empty, whose elements have whole bytes, where each tile is a
/// thread.
void emitMatMulByThreads(KernelBuilder &kb, device::MatMulOp matmul);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_MATMULTHREADS_H
