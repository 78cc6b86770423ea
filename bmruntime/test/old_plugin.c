// SPDX-License-Identifier: Apache-2.0
//===- old_plugin.c - A back end of another version of the interface ------===//
#include "bmrt/backend.h"

// Nothing behind the number can be relied upon.
BMRT_API const uint32_t bmrt_backend[] = {99};
