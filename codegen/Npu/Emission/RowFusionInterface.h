//===- RowFusionInterface.h - Ops that copies are fused into ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_ROWFUSIONINTERFACE_H
#define TESSERA_CODEGEN_NPU_EMISSION_ROWFUSIONINTERFACE_H

#include "bmodel/npu/chip.h"
#include "codegen/Npu/Decisions/FusedOps.h"
#include "mlir/IR/OpDefinition.h"

namespace tessera::npu {
using bmodel::npu::Chip;
} // namespace tessera::npu

#include "codegen/Npu/Emission/RowFusionInterface.h.inc"

#endif // TESSERA_CODEGEN_NPU_EMISSION_ROWFUSIONINTERFACE_H
