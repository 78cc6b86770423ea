//===- FinishImport.h - From an imported module to NAME_top.mlir *- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TOOLS_FINISHIMPORT_H
#define TESSERA_CODEGEN_TOOLS_FINISHIMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace tessera::tool {

/// Runs the Top pipeline on |module| unless |optimises| is false, writes it to |output| and its weights beside it, and
/// returns the description for the result event.
llvm::Expected<llvm::json::Object> finishImport(mlir::ModuleOp module, const std::string &output, bool optimises);

} // namespace tessera::tool

#endif // TESSERA_CODEGEN_TOOLS_FINISHIMPORT_H
