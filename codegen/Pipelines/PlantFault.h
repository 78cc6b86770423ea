//===- PlantFault.h - A fault on purpose, for tests of what finds faults -*-=//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_PIPELINES_PLANTFAULT_H
#define TESSERA_CODEGEN_PIPELINES_PLANTFAULT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"

namespace tessera::codegen {

/// Breaks a function of device ops as the environment variable TESSERA_PLANTED_FAULT says; does nothing without it.
/// It is a list "key=value;…": every op is broken that is of the name `op`, of which an operand is made by an op of
/// the name `producer` (if given), and in whose region there is an op of the name `contains` (if given). How, says
/// `do`: "crash", "refuse" (an error), "bypass" (readers of the result get an operand of its type), or "set NAME VALUE"
/// (an attribute). Errors: what `refuse` tells, and a text that is no such list.
llvm::Error plantFault(mlir::func::FuncOp function);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_PLANTFAULT_H
