//===- RowMatMul.h - Products of rows that lie side by side -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_ROWMATMUL_H
#define TESSERA_CODEGEN_KERNELS_ROWMATMUL_H

#include "codegen/Kernels/KernelBuilder.h"
#include "device_dialect/IR/DeviceComputeOps.h"

namespace tessera::kernels {

/// Whether |op|, of row-major static floats none of which are packed, costs least as the products of rows, where both
/// factors have the common dim in runs: a matrix times a vector, or few rows times a transposed matrix. Not where the
/// order of sums is stated.
bool isRowMatMul(device::MatMulOp op);

/// Emits it.
void emitRowMatMul(KernelBuilder &kb, device::MatMulOp op);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_ROWMATMUL_H
