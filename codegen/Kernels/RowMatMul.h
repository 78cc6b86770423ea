//===- RowMatMul.h - Matmuls of contiguous rows -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_ROWMATMUL_H
#define TESSERA_CODEGEN_KERNELS_ROWMATMUL_H

#include "codegen/Kernels/KernelBuilder.h"
#include "device_dialect/IR/DeviceComputeOps.h"

namespace tessera::kernels {

/// Returns true if |op|, on unpacked row-major static floats, costs least as contractions of contiguous rows: a matrix
/// times a vector, or few rows times a transposed matrix. Returns false if the order of sums is specified.
bool isRowMatMul(device::MatMulOp op);

/// Emits the kernel of |op|, for which isRowMatMul() holds.
void emitRowMatMul(KernelBuilder &kb, device::MatMulOp op);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_ROWMATMUL_H
