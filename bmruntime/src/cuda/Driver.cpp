// SPDX-License-Identifier: Apache-2.0
//===- Driver.cpp - NVIDIA's driver, loaded on demand ---------------------===//
#include "Driver.h"

#include "../core/Status.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

namespace bmrt::cuda {

const char *Driver::textOf(CUresult error) const {
  static thread_local char text[200];
  const char *name = nullptr, *what = nullptr;
  if (cuGetErrorName(error, &name) != CUDA_SUCCESS || cuGetErrorString(error, &what) != CUDA_SUCCESS) {
    snprintf(text, sizeof text, "CUDA error %d", error);
  } else {
    snprintf(text, sizeof text, "%s (%s)", name, what);
  }
  return text;
}

namespace {

bmrt_code_t findFunctions(void *library, const char *path, Driver &driver, bmrt_status_t *status) {
  auto find = [&](const char *name, auto &function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
#define CUDA_FUNCTION(name, ...)                                                                                       \
  if (!find(#name, driver.name)) {                                                                                     \
    return BMRT_FAIL(                                                                                                  \
        status, UNSUPPORTED,                                                                                           \
        "'%.200s' has no function %s: it is older than CUDA %d.%d, or not a driver of NVIDIA; update the "             \
        "driver",                                                                                                      \
        path, #name, kOldestDriver / 1000, kOldestDriver % 1000 / 10);                                                 \
  }
#include "DriverFunctions.inc"
#undef CUDA_FUNCTION
  return BMRT_OK;
}

bmrt_code_t checkVersion(const Driver &driver, bmrt_status_t *status) {
  int version = 0;
  if (CUresult error = driver.cuDriverGetVersion(&version); error != CUDA_SUCCESS) {
    return BMRT_FAIL(status, UNSUPPORTED, "NVIDIA's driver does not report its version: %s", driver.textOf(error));
  }
  if (version < kOldestDriver) {
    return BMRT_FAIL(status, UNSUPPORTED,
                     "NVIDIA's driver supports CUDA %d.%d, but %d.%d or newer is required: update it", version / 1000,
                     version % 1000 / 10, kOldestDriver / 1000, kOldestDriver % 1000 / 10);
  }
  if (CUresult error = driver.cuInit(0); error != CUDA_SUCCESS) {
    return BMRT_FAIL(status, UNSUPPORTED, "%s: %s",
                     error == CUDA_ERROR_NO_DEVICE ? "this machine has no NVIDIA GPU that its driver knows"
                                                   : "NVIDIA's driver does not start",
                     driver.textOf(error));
  }
  return BMRT_OK;
}

} // namespace

bmrt_code_t loadDriver(const Driver **out, bmrt_status_t *status) {
  static std::mutex mutex;
  static Driver driver;
  static bool isLoaded = false;
  std::lock_guard lock(mutex);
  if (!isLoaded) {
    const char *named = getenv("BMRT_LIBCUDA");
    const char *path = named && *named ? named : "libcuda.so.1";
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      return BMRT_FAIL(status, UNSUPPORTED,
                       "NVIDIA's driver was not found: %.200s. Install it, or set BMRT_LIBCUDA to its path", dlerror());
    }
    bmrt_code_t code = findFunctions(library, path, driver, status);
    if (code == BMRT_OK) {
      code = checkVersion(driver, status);
    }
    if (code != BMRT_OK) {
      dlclose(library);
      return code;
    }
    isLoaded = true;
  }
  *out = &driver;
  return BMRT_OK;
}

} // namespace bmrt::cuda
