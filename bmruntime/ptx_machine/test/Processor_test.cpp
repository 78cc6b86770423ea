//===- Processor_test.cpp - Skips the tests on old processors -------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/PtxMachine.h"

#include <gtest/gtest.h>

namespace ptx::test {
namespace {

/// Skips every test if the processor cannot run the machine.
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
