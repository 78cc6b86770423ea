// SPDX-License-Identifier: Apache-2.0
//===- Backend.h - Lookup of back ends ------------------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_BACKEND_H
#define TESSERA_BMRUNTIME_SRC_CORE_BACKEND_H

#include "bmrt/backend.h"

namespace bmrt::core {

/// Finds the back end of |family|: one that is built in, one that the program has registered, or one in a library
/// libbmrt_<family>.so in the folder of this library, which is loaded on first use and never unloaded. The status
/// states what is missing. May be called from any thread.
bmrt_code_t findBackend(const char *family, const bmrt_backend_t **out, bmrt_status_t *status);

/// The built-in back ends, followed by null (src/Backends.cpp).
extern const bmrt_backend_t *const builtInBackends[];

inline bool worksOnHostMemory(const bmrt_backend_t &backend) { return backend.flags & BMRT_BACKEND_HOST_MEMORY; }
inline bool hasHostKernels(const bmrt_backend_t &backend) { return backend.flags & BMRT_BACKEND_HOST_KERNELS; }

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_BACKEND_H
