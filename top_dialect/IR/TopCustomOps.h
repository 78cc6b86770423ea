//===- TopCustomOps.h - Operators outside Tessera ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_TOPCUSTOMOPS_H
#define TESSERA_TOP_DIALECT_IR_TOPCUSTOMOPS_H

#include "top_dialect/IR/CustomOperators.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/TopInterfaces.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_OP_CLASSES
#include "top_dialect/IR/TopCustomOps.h.inc"

namespace tessera::top {

/// Returns the operator and the attributes of |op|, which own the text.
CustomCall describeCall(CustomOp op);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_TOPCUSTOMOPS_H
