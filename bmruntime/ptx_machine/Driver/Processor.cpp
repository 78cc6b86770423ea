//===- Processor.cpp - Checks the processor's features --------------------===//
// SPDX-License-Identifier: Apache-2.0
// This file is compiled for any x86-64 processor, unlike the code that executes PTX.
#include "bmruntime/ptx_machine/PtxMachine.h"

bool ptxMachineProcessorSuffices(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}
