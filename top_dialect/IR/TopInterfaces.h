//===- TopInterfaces.h - Interfaces of Top ops ----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_TOPINTERFACES_H
#define TESSERA_TOP_DIALECT_IR_TOPINTERFACES_H

#include "top_dialect/IR/HostTensor.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"

namespace tessera::top::detail {
/// Runs `inferShapes` of `op` and checks that its declared result types are compatible.
llvm::LogicalResult verifyInferredTypes(mlir::Operation *op);
} // namespace tessera::top::detail

#include "top_dialect/IR/TopInterfaces.h.inc"

#endif // TESSERA_TOP_DIALECT_IR_TOPINTERFACES_H
