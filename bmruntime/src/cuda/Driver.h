// SPDX-License-Identifier: Apache-2.0
//===- Driver.h - NVIDIA's driver, loaded when it is wanted ---------------===//
//
// The CUDA driver API by dlopen: of libcuda.so.1, or of the file that the variable BMRT_LIBCUDA names. Nothing of CUDA
// is needed to build or to link.
//
//===----------------------------------------------------------------------===//
#ifndef BMRT_CUDA_DRIVER_H
#define BMRT_CUDA_DRIVER_H

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

/// Those that are told apart here; the driver names all of them.
enum CUresult : int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_NOT_READY = 600,
  // A kernel faulted, and its context is lost.
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

/// 12.0: the first whose compiler reads the PTX that models have (ISA 8.0).
inline constexpr int kOldestDriver = 12000;

/// As the driver has it.
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

  /// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)", in memory of the thread.
  const char *textOf(CUresult error) const;
};

/// The driver of this process, which stays loaded. Errors: there is none, it is too old, it has no device. What failed
/// is tried again by the next call.
bmrt_code_t loadDriver(const Driver **out, bmrt_status_t *status);

} // namespace bmrt::cuda

#endif // BMRT_CUDA_DRIVER_H
