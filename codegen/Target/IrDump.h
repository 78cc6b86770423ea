//===- IrDump.h - The IR behind every pass, in files ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TARGET_IRDUMP_H
#define TESSERA_CODEGEN_TARGET_IRDUMP_H

#include "codegen/Target/Phases.h"
#include "top_dialect/IR/ModuleIO.h"

namespace mlir {
class PassManager;
} // namespace mlir

namespace tessera::codegen {

/// Shows |observer|, if there is one, the module behind every pass of |passes|, as PHASE-PASS.
void watch(mlir::PassManager &passes, llvm::StringRef phase, const IrObserver &observer);

/// Writes a module to NUMBER-PHASE.mlir of a folder, with its weights beside it (those that are the same once): what
/// tessera-opt goes on with. One that is what was written last is not written again. The first error stops it.
class IrDump {
public:
  /// Files go to |folder|, which is made if it is missing.
  explicit IrDump(std::string folder) : folder(std::move(folder)) {}

  /// As IrObserver.
  void operator()(mlir::ModuleOp module, llvm::StringRef phase);
  /// The error that has stopped it, if any.
  llvm::Error check() const;

private:
  llvm::Error write(mlir::ModuleOp module, llvm::StringRef phase);

  std::string folder;
  std::string last; ///< as text
  size_t number = 0;
  top::WeightFiles weights;
  std::string failure; ///< the error's text
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_TARGET_IRDUMP_H
