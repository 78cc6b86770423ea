//===- Processor.cpp - Whether the processor suffices ----------------------===//
// SPDX-License-Identifier: Apache-2.0
// Compiled for any x86-64 processor, unlike what executes PTX.
#include "regression/cuda/machine/PtxMachine.h"

bool ptxMachineProcessorSuffices(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}
