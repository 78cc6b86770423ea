// SPDX-License-Identifier: Apache-2.0
//===- NpuPlugin.cpp - The NPU in software as libbmrt_npu.so ----------------===//
#include "NpuBackend.h"

extern "C" BMRT_API const bmrt::core::Plugin bmrt_plugin = {bmrt::core::kPluginRelease, &bmrt::npu::backend};
