// SPDX-License-Identifier: Apache-2.0
//===- CpuDetectionAarch64.cpp - CPU features of AArch64 ------------------===//
#include "CpuDetection.h"
#include "bmodel/cpu_features.h"

#include <asm/hwcap.h>
#include <sys/auxv.h>

uint64_t bmodel::detectCpuFeatures() { return getauxval(AT_HWCAP) & HWCAP_ASIMD ? BM_CPU_ASIMD : 0; }

uint64_t bmodel::permittedCpuFeatures(uint64_t features) { return features; }
