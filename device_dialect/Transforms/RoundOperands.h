//===- RoundOperands.h - Attention of 16-bit floats -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_TRANSFORMS_ROUNDOPERANDS_H
#define TESSERA_DEVICE_DIALECT_TRANSFORMS_ROUNDOPERANDS_H

#include "device_dialect/IR/DeviceComputeOps.h"

namespace tessera::device {

/// The type of 16-bit floats to which |map| rounds its one operand, if it does nothing else; null for others.
mlir::Type roundedBy(MapOp map);

/// Makes q, k or v of an attention, of f32, one of |element|s: what makes it rounds it where attention alone reads it,
/// moved or not; else a map behind it does. Nothing where it has the type.
void roundOperand(mlir::OpOperand &operand, mlir::Type element);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_TRANSFORMS_ROUNDOPERANDS_H
