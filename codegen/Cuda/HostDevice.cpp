//===- HostDevice.cpp - Whether this machine has a GPU --------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/HostDevice.h"

#include "llvm/Support/DynamicLibrary.h"
#include <cstdlib>

namespace tessera::cuda {

bool hasDevice(unsigned computeCapability) {
  const char *named = getenv("BMRT_LIBCUDA");
  llvm::sys::DynamicLibrary driver =
      llvm::sys::DynamicLibrary::getPermanentLibrary(named && *named ? named : "libcuda.so.1");
  auto *init = reinterpret_cast<int (*)(unsigned)>(driver.getAddressOfSymbol("cuInit"));
  auto *get = reinterpret_cast<int (*)(int *, int)>(driver.getAddressOfSymbol("cuDeviceGet"));
  auto *ask = reinterpret_cast<int (*)(int *, int, int)>(driver.getAddressOfSymbol("cuDeviceGetAttribute"));
  constexpr int kMajor = 75, kMinor = 76; // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_..
  int device = 0, major = 0, minor = 0;
  return init && get && ask && !init(0) && !get(&device, 0) && !ask(&major, kMajor, device) &&
         !ask(&minor, kMinor, device) && unsigned(10 * major + minor) >= computeCapability;
}

} // namespace tessera::cuda
