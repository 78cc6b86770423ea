//===- Phases.h - Progress of a compilation ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TARGET_PHASES_H
#define TESSERA_CODEGEN_TARGET_PHASES_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"

#include <functional>

namespace tessera::codegen {

/// Progress of a phase: number of finished items, in round |part| of about |parts| rounds over them.
struct Progress {
  size_t done = 0, total = 0, part = 1, parts = 1;
};

/// Callbacks: |begin| when a phase begins, which ends the previous one; |progress| in between, from any thread.
struct PhaseObserver {
  std::function<void(llvm::StringRef name)> begin = [](llvm::StringRef) {};
  std::function<void(const Progress &at)> progress = [](const Progress &) {};
};

/// Called with the module after a pass or another step has changed it; |phase| names the step, for use in a file name.
/// May be null.
using IrObserver = std::function<void(mlir::ModuleOp module, llvm::StringRef phase)>;

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_TARGET_PHASES_H
