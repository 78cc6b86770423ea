//===- RowLanes.h - Products of rows that lie over lanes --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_ROWLANES_H
#define TESSERA_CODEGEN_NPU_EMISSION_ROWLANES_H

#include "codegen/Npu/Emission/EmissionInterface.h"

namespace tessera::npu {

/// Why a product by constant weights cannot have its rows over lanes, as norms and attention have theirs, or success.
llvm::Error checkRowLanes(device::MatMulOp op, EmissionContext &context);
/// Whether it is faster so: what need not pass outside memory, against lanes that the last rows leave idle.
bool paysRowLanes(device::MatMulOp op, EmissionContext &context);
/// Emits it so, by the command `matmul`.
llvm::Error emitRowLanes(device::MatMulOp op, EmissionContext &context);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_ROWLANES_H
