//===- RoundOperands.h - Attention of 16-bit floats -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_TRANSFORMS_ROUNDOPERANDS_H
#define TESSERA_DEVICE_DIALECT_TRANSFORMS_ROUNDOPERANDS_H

#include "device_dialect/IR/DeviceComputeOps.h"

namespace tessera::device {

/// Returns the 16-bit float type to which |map| rounds its only operand, if it does nothing else; otherwise null.
mlir::Type roundedBy(MapOp map);

/// Converts q, k or v of an attention from f32 to |element|. If only attention reads the value (directly or through
/// moves), its producer rounds it; otherwise a new map does. Does nothing if the operand has this type.
void roundOperand(mlir::OpOperand &operand, mlir::Type element);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_TRANSFORMS_ROUNDOPERANDS_H
