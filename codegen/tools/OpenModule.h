//===- OpenModule.h - The module that a subcommand works on ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace tessera::tool {

/// A NAME_top.mlir in a context of its own, which has the dialects of all subcommands and no threads yet.
struct OpenModule {
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< destroyed before its context
};

/// Reads the module at |path|, or takes the one that a session has read for this process. It is the caller's to change.
llvm::Expected<OpenModule> openModule(const std::string &path);

/// Of a session: reads the module at |path| for the processes that are made from here on, unless it has it and the
/// files are still the same. Where it cannot be read nothing happens: that is for openModule to tell.
void preloadModule(const std::string &path);

} // namespace tessera::tool
