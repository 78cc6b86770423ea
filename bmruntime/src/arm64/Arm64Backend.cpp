// SPDX-License-Identifier: Apache-2.0
//===- Arm64Backend.cpp - Native code of 64-bit Arm -----------------------===//
#include "Arm64Backend.h"

#include "../native/KernelPrograms.h"

using namespace bmrt;

static constexpr native::CpuFamily kFamily = {"arm64", "arm64", &native::aarch64};

const bmrt_backend_t arm64::backend = native::backendOf<kFamily>();
