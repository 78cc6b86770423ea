// SPDX-License-Identifier: Apache-2.0
//===- Arm64Backend.h - Native code of 64-bit Arm -------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_ARM64_ARM64BACKEND_H
#define TESSERA_BMRUNTIME_SRC_ARM64_ARM64BACKEND_H

#include "bmrt/backend.h"

namespace bmrt::arm64 {

/// The back end for subnets of arm64 chips.
extern const bmrt_backend_t backend;

} // namespace bmrt::arm64

#endif // TESSERA_BMRUNTIME_SRC_ARM64_ARM64BACKEND_H
