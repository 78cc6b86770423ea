//===- HostDevice.h - Whether this machine has a GPU ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_HOSTDEVICE_H
#define TESSERA_CODEGEN_CUDA_HOSTDEVICE_H

#include <string>

namespace tessera::cuda {

/// Whether this machine's first GPU has that compute capability (80 for 8.0) or a newer one, as NVIDIA's driver says:
/// libcuda.so.1, or the file that the variable BMRT_LIBCUDA names, as the runtime has it.
bool hasDevice(unsigned computeCapability);

/// That GPU and its driver for people: "NVIDIA A100-SXM4-40GB, compute capability 8.0, driver 12.4"; "" without one.
std::string deviceIdentity();

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_HOSTDEVICE_H
