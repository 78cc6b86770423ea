//===- TopConstOps.h - Constants and control flow ---===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_TOPCONSTOPS_H
#define TESSERA_TOP_DIALECT_IR_TOPCONSTOPS_H

#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/TopInterfaces.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "top_dialect/IR/TopConstEnums.h.inc"

#define GET_OP_CLASSES
#include "top_dialect/IR/TopConstOps.h.inc"

#endif // TESSERA_TOP_DIALECT_IR_TOPCONSTOPS_H
