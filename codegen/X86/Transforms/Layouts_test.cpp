//===- Layouts_test.cpp - Tests that layouts preserve results -------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Runs the cases of the Top reference with the layouts that x86 chooses. Copies, algorithms and merged groups must not
// change any value.
//===----------------------------------------------------------------------===//
#include "codegen/X86/Transforms/Passes.h"
#include "device_dialect/Reference/TopCases.h"
#include "device_dialect/Transforms/Passes.h"

using namespace tessera;

namespace {

using Layouts = device::TopCases;

TEST_F(Layouts, EveryTopCase) {
  for (bool folded : {true, false}) {
    checkAll(TESSERA_TOP_CASES, folded, [](mlir::OpPassManager &functions) {
      functions.addPass(device::createSimplifyCopiesPass());
      functions.addPass(device::createFuseEpiloguesPass());
      functions.addPass(x86::createAssignLayoutsPass());
      functions.addPass(device::createVerifyLayoutsPass());
      functions.addPass(x86::createVerifyKernelLayoutsPass());
      functions.addPass(device::createAssignAddressesPass());
      functions.addPass(device::createVerifyAddressesPass());
    });
  }
  EXPECT_GT(checked, 50);
  EXPECT_GT(compared, 500);
}

} // namespace
