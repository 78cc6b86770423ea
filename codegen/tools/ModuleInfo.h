//===- ModuleInfo.h - A module's inputs and outputs as JSON ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace tessera::tool {

/// {"inputs":[{"name","shape","dtype","uses","preprocess"?}],"outputs":[...],"model_hash","network","model_name","ops"};
/// open dims are -1, dtypes are numpy's names, "preprocess" is the JSON text stored at the input, "uses" is what
/// describeUses() returns.
llvm::Expected<llvm::json::Object> describeModule(mlir::ModuleOp module);

/// numpy's name of an element type.
std::string numpyName(mlir::Type element);

/// The module's `func.func @main`.
llvm::Expected<mlir::Operation *> findMain(mlir::ModuleOp module);

} // namespace tessera::tool
