// SPDX-License-Identifier: Apache-2.0
//===- Backend.cpp - The back ends this library was built with ------------===//
#include "Backend.h"

#include "../npu/NpuBackend.h"
#include "../x86/X86Backend.h"

const bmrt::core::Backend *bmrt::core::findBackend(bmodel::SubnetKind kind) {
  static const Backend *const backends[] = {
#ifdef BMRT_WITH_NPU
      &npu::backend,
#endif
      &x86::backend, &x86::hostBackend};
  for (const Backend *backend : backends) {
    if (backend->kind == kind) {
      return backend;
    }
  }
  return nullptr;
}
