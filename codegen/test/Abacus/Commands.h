//===- Commands.h - Device ops as commands of an Abacus ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TEST_ABACUS_COMMANDS_H
#define TESSERA_CODEGEN_TEST_ABACUS_COMMANDS_H

#include "bmodel/abacus/program.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Error.h"

namespace tessera::abacus {

/// Commands whose views name values: numbers of tensors are known when all of a subnet is there.
struct Commands {
  std::vector<bmodel::abacus::Command> commands;
  llvm::SetVector<mlir::Value> values; ///< View::tensor is an index

  /// Appends what the op computes. The error is the constraint that fails, for the user.
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
