//===- TopShapeOps.h - Moves, indexing, resize, recurrent ---===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_TOPSHAPEOPS_H
#define TESSERA_TOP_DIALECT_IR_TOPSHAPEOPS_H

#include "top_dialect/IR/TopAttrs.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/TopInterfaces.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "top_dialect/IR/TopShapeEnums.h.inc"

#define GET_OP_CLASSES
#include "top_dialect/IR/TopShapeOps.h.inc"

#endif // TESSERA_TOP_DIALECT_IR_TOPSHAPEOPS_H
