// SPDX-License-Identifier: Apache-2.0
//===- X86Backend.h - Native code on the CPU ------------------------------===//
#ifndef BMRT_X86_X86BACKEND_H
#define BMRT_X86_X86BACKEND_H

#include "bmrt/backend.h"

namespace bmrt::x86 {

/// For subnets of x86 chips, and for what other chips leave to the host: the same code.
extern const bmrt_backend_t backend;

} // namespace bmrt::x86

#endif // BMRT_X86_X86BACKEND_H
