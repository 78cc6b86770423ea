// SPDX-License-Identifier: Apache-2.0
//===- NpuBackend.h - Runs command streams on the NPU simulator -------------===//
#ifndef TESSERA_BMRUNTIME_SRC_NPU_NPUBACKEND_H
#define TESSERA_BMRUNTIME_SRC_NPU_NPUBACKEND_H

#include "bmrt/backend.h"

namespace bmrt::npu {

extern const bmrt_backend_t backend;

} // namespace bmrt::npu

#endif // TESSERA_BMRUNTIME_SRC_NPU_NPUBACKEND_H
