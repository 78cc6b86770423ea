//===- TopCases.h - The cases of Top's reference, lowered -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Lowers the cases of the Top reference (functions that return pairs of actual and expected tensors) to the device
// dialect and evaluates them, after passes that preserve the logical values: once with their constants, and once with
// the constants as arguments, so that nothing folds.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_REFERENCE_TOPCASES_H
#define TESSERA_DEVICE_DIALECT_REFERENCE_TOPCASES_H

#include "device_dialect/IR/DeviceDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Reference/Evaluator.h"
#include "gtest/gtest.h"

namespace tessera::device {

class TopCases : public testing::Test {
protected:
  TopCases() { context.loadDialect<mlir::func::FuncDialect, top::TopDialect, DeviceDialect>(); }

  /// Lowers and checks every case in the folder |cases|; |addPasses| receives a pass manager for functions of device
  /// ops.
  void checkAll(const char *cases, bool folded, llvm::function_ref<void(mlir::OpPassManager &)> addPasses);

  mlir::MLIRContext context;
  int checked = 0, compared = 0; ///< numbers of cases and of float elements: a test that compares nothing must fail

private:
  void check(mlir::func::FuncOp function, const top::TensorMap &inputs);
  void compare(const top::HostTensor &actual, const top::HostTensor &expected);
};

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_REFERENCE_TOPCASES_H
