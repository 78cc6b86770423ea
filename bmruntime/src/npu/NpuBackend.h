// SPDX-License-Identifier: Apache-2.0
//===- NpuBackend.h - Runs command streams on the NPU simulator -------------===//
#ifndef BMRT_NPU_NPUBACKEND_H
#define BMRT_NPU_NPUBACKEND_H

#include "bmrt/backend.h"

namespace bmrt::npu {

extern const bmrt_backend_t backend;

} // namespace bmrt::npu

#endif // BMRT_NPU_NPUBACKEND_H
