//===- TopBlockOps.h - Ops on blocks of quantised numbers -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_TOPBLOCKOPS_H
#define TESSERA_TOP_DIALECT_IR_TOPBLOCKOPS_H

#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/TopInterfaces.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_OP_CLASSES
#include "top_dialect/IR/TopBlockOps.h.inc"

#endif // TESSERA_TOP_DIALECT_IR_TOPBLOCKOPS_H
