// SPDX-License-Identifier: Apache-2.0
//===- Driver.h - NVIDIA's driver, loaded on demand -----------------------===//
//
// The CUDA driver API, loaded with dlopen from libcuda.so.1 or from the file that the environment variable BMRT_LIBCUDA
// names. Neither building nor linking requires anything of CUDA.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CUDA_DRIVER_H
#define TESSERA_BMRUNTIME_SRC_CUDA_DRIVER_H

#include "bmrt/bmrt.h"

#include <cstddef>
#include <cstdint>

namespace bmrt::cuda {

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;
using CUmemoryPool = struct CUmemPoolHandle_st *;
using CUgraph = struct CUgraph_st *;
using CUgraphExec = struct CUgraphExec_st *;

/// The error codes that this code distinguishes; the driver provides the names of all codes.
enum CUresult : int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_NOT_READY = 600,
  // The codes from here on mean that a kernel faulted and its context is lost.
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
  CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
  CUDA_ERROR_INVALID_PC = 718,
  CUDA_ERROR_LAUNCH_FAILED = 719,
};

/// 12.0 is the first driver whose compiler reads the PTX version of the models (ISA 8.0).
inline constexpr int kOldestDriver = 12000;

/// The driver's CUmemPoolProps.
struct CUmemPoolProps {
  int allocType, handleTypes;
  int locationType, locationId;
  void *securityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
};
static_assert(sizeof(CUmemPoolProps) == 88);

struct Driver {
#define CUDA_FUNCTION(name, ...) CUresult (*name)(__VA_ARGS__);
#include "DriverFunctions.inc"
#undef CUDA_FUNCTION

  /// Returns a text such as "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)", in thread-local
  /// memory.
  const char *textOf(CUresult error) const;
};

/// Returns the driver of this process, which is never unloaded. Fails if there is no driver, if it is too old, or if it
/// has no device; the next call tries again.
bmrt_code_t loadDriver(const Driver **out, bmrt_status_t *status);

} // namespace bmrt::cuda

#endif // TESSERA_BMRUNTIME_SRC_CUDA_DRIVER_H
