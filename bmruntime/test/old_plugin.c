// SPDX-License-Identifier: Apache-2.0
//===- old_plugin.c - A back end of another version of the interface ------===//
#include "bmrt/backend.h"

// No member after the version number may be read.
BMRT_API const uint32_t bmrt_backend[] = {99};
