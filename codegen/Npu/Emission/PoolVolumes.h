//===- PoolVolumes.h - Pools over three dims --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_POOLVOLUMES_H
#define TESSERA_CODEGEN_NPU_EMISSION_POOLVOLUMES_H

#include "codegen/Npu/Emission/EmissionContext.h"
#include "device_dialect/IR/DeviceOps.h"

namespace tessera::npu {

/// Emits a maximum in two steps: over the window within each plane, then over planes. In the second step each plane is
/// one row.
llvm::Error emitPoolOfVolumes(device::PoolOp op, EmissionContext &context);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_POOLVOLUMES_H
