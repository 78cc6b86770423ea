//===- IrDump.h - Dumps of the IR after every pass --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TARGET_IRDUMP_H
#define TESSERA_CODEGEN_TARGET_IRDUMP_H

#include "codegen/Target/Phases.h"
#include "top_dialect/IR/ModuleIO.h"

namespace mlir {
class PassManager;
} // namespace mlir

namespace tessera::codegen {

/// Calls |observer|, if set, with the module after every pass of |passes|, named PHASE-PASS.
void watch(mlir::PassManager &passes, llvm::StringRef phase, const IrObserver &observer);

/// Writes modules to NUMBER-PHASE.mlir in a folder, with their weights beside them (unchanged weights once), as input
/// for tessera-opt. Skips a module that equals the last one written. Stops at the first error.
class IrDump {
public:
  /// Writes to |folder|, which is created if it does not exist.
  explicit IrDump(std::string folder) : folder(std::move(folder)) {}

  /// See IrObserver.
  void operator()(mlir::ModuleOp module, llvm::StringRef phase);
  /// Returns the error that stopped the dump, if any.
  llvm::Error check() const;

private:
  llvm::Error write(mlir::ModuleOp module, llvm::StringRef phase);

  std::string folder;
  std::string last; ///< text of the last module written
  size_t number = 0;
  top::WeightFiles weights;
  std::string failure; ///< the error's text
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_TARGET_IRDUMP_H
