//===- Evaluate.h - Evaluation of a function between files ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TOOLS_EVALUATE_H
#define TESSERA_CODEGEN_TOOLS_EVALUATE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "top_dialect/IR/WeightStore.h"
#include "top_dialect/Reference/Evaluator.h"
#include "llvm/Support/Error.h"

#include <string>

namespace tessera::tool {

/// Adds the store's tensors for arguments `begin` .. `end` of the network. `path` names the store in errors.
llvm::Error readInputs(mlir::func::FuncOp network, const std::string &path, const top::WeightStore &store,
                       unsigned begin, unsigned end, top::TensorMap &inputs);

/// Makes ops read the store's tensors instead of the results of other ops with the same names, so that each op's own
/// error shows. Tensors with a different type or shape are an error, or skipped if `skipsOthers`. Call it before
/// readInputs(), which reads the given tensors too.
llvm::Error giveOperands(mlir::func::FuncOp network, const std::string &path, const top::WeightStore &store,
                         bool skipsOthers);

/// Evaluates the network and writes its outputs or, with `all`, every named tensor, in the order of evaluation. Each
/// tensor is written when it is computed, so that none is held longer than the network needs it. Returns their number.
llvm::Expected<int64_t> evaluate(mlir::func::FuncOp network, const top::TensorMap &inputs, const std::string &output,
                                 bool all);

} // namespace tessera::tool

#endif // TESSERA_CODEGEN_TOOLS_EVALUATE_H
