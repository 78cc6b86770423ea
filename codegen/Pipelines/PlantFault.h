//===- PlantFault.h - Deliberate faults for tests ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_PIPELINES_PLANTFAULT_H
#define TESSERA_CODEGEN_PIPELINES_PLANTFAULT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"

namespace tessera::codegen {

/// Breaks ops of a function of device ops as the environment variable TESSERA_PLANTED_FAULT describes, for tests of
/// fault detection; does nothing if it is not set. Its value is a list "key=value;...". It selects every op named `op`
/// that has an operand computed by an op named `producer` (if given) and an op named `contains` in its region (if
/// given). The key `do` is the fault: "crash", "refuse" (an error), "bypass" (readers of the result get an operand of
/// the same type), or "set NAME VALUE" (an attribute). Fails for "refuse" and for an unknown `do`.
llvm::Error plantFault(mlir::func::FuncOp function);

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_PLANTFAULT_H
