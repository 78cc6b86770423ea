// SPDX-License-Identifier: Apache-2.0
//===- X86Backend.h - Native code on the CPU ------------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_X86_X86BACKEND_H
#define TESSERA_BMRUNTIME_SRC_X86_X86BACKEND_H

#include "bmrt/backend.h"

namespace bmrt::x86 {

/// The back end for subnets of x86 chips and for subnets that other chips leave to the host.
extern const bmrt_backend_t backend;

} // namespace bmrt::x86

#endif // TESSERA_BMRUNTIME_SRC_X86_X86BACKEND_H
