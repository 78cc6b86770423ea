// SPDX-License-Identifier: Apache-2.0
//===- NpuPlugin.cpp - The NPU simulator as libbmrt_npu.so ------------------===//
#include "NpuBackend.h"

extern "C" BMRT_API const bmrt_backend_t bmrt_backend = bmrt::npu::backend;
