//===- HostDevice.cpp - Detects a GPU in this machine ---------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/HostDevice.h"

#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstdlib>

namespace tessera::cuda {
namespace {

struct HostDevice {
  unsigned computeCapability = 0; ///< 0: this machine has no GPU
  int driver = 0;                 ///< 1000 * major + 10 * minor
  std::string name;
};

HostDevice findDevice() {
  const char *named = getenv("BMRT_LIBCUDA");
  llvm::sys::DynamicLibrary driver =
      llvm::sys::DynamicLibrary::getPermanentLibrary(named && *named ? named : "libcuda.so.1");
  auto *init = reinterpret_cast<int (*)(unsigned)>(driver.getAddressOfSymbol("cuInit"));
  auto *get = reinterpret_cast<int (*)(int *, int)>(driver.getAddressOfSymbol("cuDeviceGet"));
  auto *ask = reinterpret_cast<int (*)(int *, int, int)>(driver.getAddressOfSymbol("cuDeviceGetAttribute"));
  constexpr int kMajor = 75, kMinor = 76; // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_..
  int device = 0, major = 0, minor = 0;
  HostDevice found;
  if (init && get && ask && !init(0) && !get(&device, 0) && !ask(&major, kMajor, device) &&
      !ask(&minor, kMinor, device)) {
    found.computeCapability = unsigned(10 * major + minor);
    char text[256] = {};
    auto *version = reinterpret_cast<int (*)(int *)>(driver.getAddressOfSymbol("cuDriverGetVersion"));
    auto *name = reinterpret_cast<int (*)(char *, int, int)>(driver.getAddressOfSymbol("cuDeviceGetName"));
    if (version && name && !version(&found.driver) && !name(text, sizeof text, device)) {
      found.name = text;
    }
  }
  return found;
}

} // namespace

bool hasDevice(unsigned computeCapability) {
  unsigned found = findDevice().computeCapability;
  return found && found >= computeCapability;
}

std::string deviceIdentity() {
  HostDevice found = findDevice();
  return found.computeCapability ? llvm::formatv("{0}, compute capability {1}.{2}, driver {3}.{4}", found.name,
                                                 found.computeCapability / 10, found.computeCapability % 10,
                                                 found.driver / 1000, found.driver % 1000 / 10)
                                       .str()
                                 : "";
}

} // namespace tessera::cuda
