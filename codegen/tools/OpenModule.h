//===- OpenModule.h - Module of a subcommand ------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TOOLS_OPENMODULE_H
#define TESSERA_CODEGEN_TOOLS_OPENMODULE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace tessera::tool {

/// A NAME_top.mlir in a separate context, which has the dialects of all subcommands but no threads yet.
struct OpenModule {
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< destroyed before its context
};

/// Reads the module at |path|, or takes the one that a session has preloaded for this process. The caller owns the
/// module and may change it.
llvm::Expected<OpenModule> openModule(const std::string &path);

/// Reads the module at |path| in a session, for the processes that it forks from then on. Does nothing if the module is
/// already loaded and its files are unchanged, or if it cannot be read; openModule() then reports the error.
void preloadModule(const std::string &path);

} // namespace tessera::tool

#endif // TESSERA_CODEGEN_TOOLS_OPENMODULE_H
