//===- DeviceInterfaces.h - Interfaces of device ops ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_IR_DEVICEINTERFACES_H
#define TESSERA_DEVICE_DIALECT_IR_DEVICEINTERFACES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopInterfaces.h"

namespace tessera::device {

/// Layouts of an operand that an op accepts for a result of known layout.
enum class OperandLayout {
  RowMajor,
  AsResult, ///< in channel blocks if and only if the result is
  Any,
};

/// Returns the operations in the regions of |op|, at least one, for each element of its results.
int64_t countRegionFlops(mlir::Operation *op);
/// Returns the number |count| if all symbols have their likely values; 0 if it is unknown.
int64_t likelyCount(Dim count);
} // namespace tessera::device

#include "device_dialect/IR/DeviceInterfaces.h.inc"
#include "device_dialect/IR/PackingInterface.h.inc"

#endif // TESSERA_DEVICE_DIALECT_IR_DEVICEINTERFACES_H
