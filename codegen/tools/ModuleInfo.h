//===- ModuleInfo.h - A module's inputs and outputs as JSON ---------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TOOLS_MODULEINFO_H
#define TESSERA_CODEGEN_TOOLS_MODULEINFO_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace tessera::tool {

/// Returns {"inputs":[{"name","shape","dtype","uses","preprocess"?}], "outputs":[...], "narrow", "model_hash",
/// "network", "model_name", "ops"}. Open dims are -1, dtypes are numpy's names, "preprocess" is the JSON text stored at
/// the input, "uses" is the result of describeUses().
llvm::Expected<llvm::json::Object> describeModule(mlir::ModuleOp module);

/// Returns numpy's name of an element type.
std::string numpyName(mlir::Type element);

/// Returns the module's `func.func @main`.
llvm::Expected<mlir::Operation *> findMain(mlir::ModuleOp module);

} // namespace tessera::tool

#endif // TESSERA_CODEGEN_TOOLS_MODULEINFO_H
