// SPDX-License-Identifier: Apache-2.0
//===- X86Backend.cpp - Native code on the CPU ----------------------------===//
#include "X86Backend.h"

#include "../native/KernelPrograms.h"

using namespace bmrt;

static constexpr native::CpuFamily kFamily = {"x86", "x86-avx2 or x86-v2", &native::x86_64};

const bmrt_backend_t x86::backend = native::backendOf<kFamily>();
