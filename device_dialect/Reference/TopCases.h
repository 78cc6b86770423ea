//===- TopCases.h - The cases of Top's reference, lowered -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// For tests: the cases of the Top reference (functions that return pairs of actual and expected tensors) are lowered to
// the device dialect and evaluated, behind whatever passes that keep the logical values: once with their constants,
// once with the constants turned into arguments, so that nothing folds.
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

  /// Lowers and checks every case of the folder |cases|; |addPasses| gets a manager of functions of device ops.
  void checkAll(const char *cases, bool folded, llvm::function_ref<void(mlir::OpPassManager &)> addPasses);

  mlir::MLIRContext context;
  int checked = 0, compared = 0; ///< cases, elements of floats: a test that compares nothing must fail

private:
  void check(mlir::func::FuncOp function, const top::TensorMap &inputs);
  void compare(const top::HostTensor &actual, const top::HostTensor &expected);
};

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_REFERENCE_TOPCASES_H
