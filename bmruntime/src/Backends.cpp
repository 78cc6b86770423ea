// SPDX-License-Identifier: Apache-2.0
//===- Backends.cpp - The built-in back ends ------------------------------===//
#include "arm64/Arm64Backend.h"
#include "core/Backend.h"
#include "npu/NpuBackend.h"
#include "x86/X86Backend.h"

using namespace bmrt;

const bmrt_backend_t *const core::builtInBackends[] = {
    &x86::backend,
    &arm64::backend,
#ifdef BMRT_WITH_NPU
    &npu::backend,
#endif
    nullptr,
};
