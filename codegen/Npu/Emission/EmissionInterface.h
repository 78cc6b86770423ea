//===- EmissionInterface.h - Emits device ops as commands -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_EMISSIONINTERFACE_H
#define TESSERA_CODEGEN_NPU_EMISSION_EMISSIONINTERFACE_H

#include "codegen/Npu/Emission/EmissionContext.h"
#include "mlir/IR/OpDefinition.h"

namespace tessera::npu {

/// Returns an error if the chip's units do not support the element type of an operand or a result.
llvm::Error checkElementTypes(mlir::Operation *op, const Chip &chip);

} // namespace tessera::npu

#include "codegen/Npu/Emission/EmissionInterface.h.inc"

#endif // TESSERA_CODEGEN_NPU_EMISSION_EMISSIONINTERFACE_H
