//===- HostDevice.h - Whether this machine has a GPU ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_HOSTDEVICE_H
#define TESSERA_CODEGEN_CUDA_HOSTDEVICE_H

namespace tessera::cuda {

/// Whether this machine's first GPU has that compute capability (80 for 8.0) or a newer one, as NVIDIA's driver says:
/// libcuda.so.1, or the file that the variable BMRT_LIBCUDA names, as the runtime has it.
bool hasDevice(unsigned computeCapability);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_HOSTDEVICE_H
