//===- Processor_test.cpp - Whether the tests can run ----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "regression/cuda/machine/PtxMachine.h"

#include <gtest/gtest.h>

namespace ptx::test {
namespace {

/// Skips every test where the machine cannot run.
class Processor : public testing::Environment {
public:
  void SetUp() override {
    if (!ptxMachineProcessorSuffices()) {
      GTEST_SKIP() << "the PTX machine needs a processor with AVX2, FMA and F16C";
    }
  }
};

testing::Environment *const processor = testing::AddGlobalTestEnvironment(new Processor);

} // namespace
} // namespace ptx::test
