//===- TopFixedPointOps.h - Fixed-point arithmetic on integers --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_TOPFIXEDPOINTOPS_H
#define TESSERA_TOP_DIALECT_IR_TOPFIXEDPOINTOPS_H

#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/TopInterfaces.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_OP_CLASSES
#include "top_dialect/IR/TopFixedPointOps.h.inc"

#endif // TESSERA_TOP_DIALECT_IR_TOPFIXEDPOINTOPS_H
