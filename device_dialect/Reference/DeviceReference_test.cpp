//===- DeviceReference_test.cpp - Lowered ops against literal expectations ---===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Reference/TopCases.h"
#include "device_dialect/Transforms/Passes.h"

using namespace tessera;

namespace {

using DeviceReference = device::TopCases;

TEST_F(DeviceReference, EveryTopCase) {
  for (bool folded : {true, false}) {
    checkAll(TESSERA_TOP_CASES, folded, [](mlir::OpPassManager &) {});
    checkAll(TESSERA_TOP_CASES, folded, [](mlir::OpPassManager &functions) {
      functions.addPass(device::createSimplifyCopiesPass());
      functions.addPass(device::createFuseEpiloguesPass());
      functions.addPass(device::createVerifyLayoutsPass());
      functions.addPass(device::createAssignAddressesPass());
      functions.addPass(device::createVerifyAddressesPass());
    });
  }
  EXPECT_GT(checked, 100);
  EXPECT_GT(compared, 1000);
}

} // namespace
