//===- Cones.h - The ops between given tensors and what they make ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"

namespace tessera::tool {

/// Keeps of a network whose ops read given tensors (giveOperands) what `budget` elements and multiplications pay for:
/// the cones of cheap tensors first, a cone being the ops between given tensors and the tensor they make. A result of
/// the network that is too dear becomes the given tensor. With `only`, no other tensor is evaluated. Returns by tensor
/// what each kept cone consists of: "ops", names of ops, and "reads", names of tensors that are given.
llvm::json::Object keepCheapCones(mlir::func::FuncOp network, int64_t budget, const llvm::StringSet<> &only);

} // namespace tessera::tool
