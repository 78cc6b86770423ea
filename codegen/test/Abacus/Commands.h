//===- Commands.h - Device ops as commands of an Abacus ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TEST_ABACUS_COMMANDS_H
#define TESSERA_CODEGEN_TEST_ABACUS_COMMANDS_H

#include "bmodel/abacus/program.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Error.h"

namespace tessera::abacus {

/// Commands whose views refer to values. The tensor numbers are known once all ops of a subnet are added.
struct Commands {
  std::vector<bmodel::abacus::Command> commands;
  llvm::SetVector<mlir::Value> values; ///< View::tensor is an index into it

  /// Appends the commands of an op. The error is the violated constraint, as shown to the user.
  llvm::Error add(mlir::Operation *op);

private:
  llvm::Error addMap(mlir::Region &body, mlir::Value result, llvm::ArrayRef<mlir::Value> operands);
  llvm::Error addProduct(mlir::Operation *op);
  llvm::Error addSteps(mlir::Region &body, bmodel::abacus::Command &command);
  llvm::Error setViews(bmodel::abacus::Command &command, mlir::Value result, llvm::ArrayRef<mlir::Value> operands,
                       unsigned lastLoop);
};

} // namespace tessera::abacus

#endif // TESSERA_CODEGEN_TEST_ABACUS_COMMANDS_H
