//===- MatMulThreads.h - Matmuls for many threads ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_MATMULTHREADS_H
#define TESSERA_CODEGEN_KERNELS_MATMULTHREADS_H

#include "codegen/Kernels/KernelBuilder.h"
#include "device_dialect/IR/DeviceComputeOps.h"

namespace tessera::kernels {

/// Emits |matmul|, on non-empty row-major tensors with elements of whole bytes, for a target on which each tile is one
/// thread.
void emitMatMulByThreads(KernelBuilder &kb, device::MatMulOp matmul);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_MATMULTHREADS_H
