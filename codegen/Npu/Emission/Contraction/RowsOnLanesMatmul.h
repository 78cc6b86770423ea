//===- RowsOnLanesMatmul.h - Matmuls with rows spread over lanes --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_CONTRACTION_ROWSONLANESMATMUL_H
#define TESSERA_CODEGEN_NPU_EMISSION_CONTRACTION_ROWSONLANESMATMUL_H

#include "codegen/Npu/Emission/EmissionInterface.h"

namespace tessera::npu {

/// Returns a number of batches if a matmul by constant weights is faster with its rows, not its columns, over the lanes
/// (the layout of norms and attention); the rows of each batch begin in lane 0. Returns nothing if columns over lanes
/// are faster.
std::optional<int64_t> chooseRowsOnLanes(device::MatMulOp op, EmissionContext &context);
/// Emits the matmul as npu.row_lanes says, by `matmul` commands.
llvm::Error emitRowsOnLanesMatmul(device::MatMulOp op, EmissionContext &context);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_CONTRACTION_ROWSONLANESMATMUL_H
