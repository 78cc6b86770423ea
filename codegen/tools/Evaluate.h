//===- Evaluate.h - Evaluates a function from file to file ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "top_dialect/IR/WeightStore.h"
#include "top_dialect/Reference/Evaluator.h"
#include "llvm/Support/Error.h"

#include <string>

namespace tessera::tool {

/// Adds the tensors of the store for arguments `begin` .. `end` of the network. `path`: of the store, for errors.
llvm::Error readInputs(mlir::func::FuncOp network, const std::string &path, const top::WeightStore &store,
                       unsigned begin, unsigned end, top::TensorMap &inputs);

/// Ops read what the store has of named tensors in place of what other ops make of them: each shows what it does
/// itself. Tensors of another type or shape are an error, or left out if `skipsOthers`. Call it before readInputs(),
/// which reads those, too.
llvm::Error giveOperands(mlir::func::FuncOp network, const std::string &path, const top::WeightStore &store,
                         bool skipsOthers);

/// Writes the network's outputs behind, with `all`, every named tensor in the order of evaluation; each as it is
/// computed, so that no tensor is held longer than the network needs it. Gives how many.
llvm::Expected<int64_t> evaluate(mlir::func::FuncOp network, const top::TensorMap &inputs, const std::string &output,
                                 bool all);

} // namespace tessera::tool
