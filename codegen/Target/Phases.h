//===- Phases.h - How far a compilation is ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TARGET_PHASES_H
#define TESSERA_CODEGEN_TARGET_PHASES_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"

#include <functional>

namespace tessera::codegen {

/// How far a phase is: items done of all, in round |part| of about |parts| over them.
struct Progress {
  size_t done = 0, total = 0, part = 1, parts = 1;
};

/// Called as each phase begins, which ends the one before; progress in between, from any thread.
struct PhaseObserver {
  std::function<void(llvm::StringRef name)> begin = [](llvm::StringRef) {};
  std::function<void(const Progress &at)> progress = [](const Progress &) {};
};

/// Is shown the module behind a pass or another step that has changed it; |phase| names the step for a file name. None:
/// nobody looks.
using IrObserver = std::function<void(mlir::ModuleOp module, llvm::StringRef phase)>;

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_TARGET_PHASES_H
