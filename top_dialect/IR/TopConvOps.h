//===- TopConvOps.h - Convolution, matmul and pooling ---===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_TOPCONVOPS_H
#define TESSERA_TOP_DIALECT_IR_TOPCONVOPS_H

#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/TopInterfaces.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "top_dialect/IR/TopConvEnums.h.inc"

#define GET_OP_CLASSES
#include "top_dialect/IR/TopConvOps.h.inc"

#endif // TESSERA_TOP_DIALECT_IR_TOPCONVOPS_H
