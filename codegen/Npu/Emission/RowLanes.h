//===- RowLanes.h - Products of rows that lie over lanes --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_ROWLANES_H
#define TESSERA_CODEGEN_NPU_EMISSION_ROWLANES_H

#include "codegen/Npu/Emission/EmissionInterface.h"

namespace tessera::npu {

/// Whether a product by constant weights is faster with its rows over lanes, as norms and attention have theirs, and in
/// how many batches, the rows of each of which begin in the first lane again; nothing: it has columns over lanes.
std::optional<int64_t> chooseRowLanes(device::MatMulOp op, EmissionContext &context);
/// Emits it as npu.row_lanes says, by the command `matmul`.
llvm::Error emitRowLanes(device::MatMulOp op, EmissionContext &context);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_ROWLANES_H
