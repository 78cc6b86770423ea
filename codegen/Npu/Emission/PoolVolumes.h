//===- PoolVolumes.h - Pools over three dims --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_POOLVOLUMES_H
#define TESSERA_CODEGEN_NPU_EMISSION_POOLVOLUMES_H

#include "codegen/Npu/Emission/EmissionContext.h"
#include "device_dialect/IR/DeviceOps.h"

namespace tessera::npu {

/// A maximum in two steps: over the window in each plane, then over the planes, whose columns are one row then.
llvm::Error emitPoolOfVolumes(device::PoolOp op, EmissionContext &context);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_POOLVOLUMES_H
