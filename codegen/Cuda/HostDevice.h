//===- HostDevice.h - Detects a GPU in this machine -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_HOSTDEVICE_H
#define TESSERA_CODEGEN_CUDA_HOSTDEVICE_H

#include <string>

namespace tessera::cuda {

/// Returns true if this machine's first GPU has at least the given compute capability (80 for 8.0). Asks NVIDIA's
/// driver: libcuda.so.1, or the file that the environment variable BMRT_LIBCUDA names, as for the runtime.
bool hasDevice(unsigned computeCapability);

/// Describes that GPU and its driver, e.g. "NVIDIA A100-SXM4-40GB, compute capability 8.0, driver 12.4"; "" without
/// one.
std::string deviceIdentity();

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_HOSTDEVICE_H
