//===- TopReduceOps.h - Reductions, softmax, normalisation ---===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_TOPREDUCEOPS_H
#define TESSERA_TOP_DIALECT_IR_TOPREDUCEOPS_H

#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/TopInterfaces.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "top_dialect/IR/TopReduceEnums.h.inc"

#define GET_OP_CLASSES
#include "top_dialect/IR/TopReduceOps.h.inc"

#endif // TESSERA_TOP_DIALECT_IR_TOPREDUCEOPS_H
