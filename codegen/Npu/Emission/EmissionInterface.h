//===- EmissionInterface.h - How device ops become commands -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_EMISSIONINTERFACE_H
#define TESSERA_CODEGEN_NPU_EMISSION_EMISSIONINTERFACE_H

#include "codegen/Npu/Emission/EmissionContext.h"
#include "mlir/IR/OpDefinition.h"

namespace tessera::npu {

/// Why the chip's units cannot compute with what the op reads and makes, or success.
llvm::Error checkElementTypes(mlir::Operation *op, const Chip &chip);

} // namespace tessera::npu

#include "codegen/Npu/Emission/EmissionInterface.h.inc"

#endif // TESSERA_CODEGEN_NPU_EMISSION_EMISSIONINTERFACE_H
