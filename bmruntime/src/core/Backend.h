// SPDX-License-Identifier: Apache-2.0
//===- Backend.h - Which back ends there are ------------------------------===//
#ifndef BMRT_CORE_BACKEND_H
#define BMRT_CORE_BACKEND_H

#include "bmrt/backend.h"

namespace bmrt::core {

/// The back end of |family|: one that the program has registered, one that this library was built with, or one in a
/// library of its own (libbmrt_<family>.so) in the folder that this library lies in, which is loaded when it is first
/// asked for and stays. The status says what is missing. From any thread.
bmrt_code_t findBackend(const char *family, const bmrt_backend_t **out, bmrt_status_t *status);

/// The back ends that this library was built with, then null (src/Backends.cpp).
extern const bmrt_backend_t *const builtInBackends[];

inline bool worksOnHostMemory(const bmrt_backend_t &backend) { return backend.flags & BMRT_BACKEND_HOST_MEMORY; }
inline bool hasHostKernels(const bmrt_backend_t &backend) { return backend.flags & BMRT_BACKEND_HOST_KERNELS; }

} // namespace bmrt::core

#endif // BMRT_CORE_BACKEND_H
