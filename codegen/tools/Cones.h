//===- Cones.h - Ops between given tensors and their results ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TOOLS_CONES_H
#define TESSERA_CODEGEN_TOOLS_CONES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"

namespace tessera::tool {

/// Reduces a network whose ops read given tensors (giveOperands) to what `budget` (in elements and multiplications)
/// allows. A cone is the set of ops between given tensors and one tensor computed from them; the cheapest cones are
/// kept first. A result of the network that is too expensive is replaced by the given tensor. If `only` is not empty,
/// no other tensor is evaluated. Returns, by tensor, "ops", the names of the ops of each kept cone, and "reads", the
/// given tensors that it reads.
llvm::json::Object keepCheapCones(mlir::func::FuncOp network, int64_t budget, const llvm::StringSet<> &only);

} // namespace tessera::tool

#endif // TESSERA_CODEGEN_TOOLS_CONES_H
