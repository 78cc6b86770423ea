// SPDX-License-Identifier: Apache-2.0
//===- DeviceMemory.cpp - Memory of a GPU ---------------------------------===//
//
// Memory comes from a separate pool of the device, in the order of a separate stream. Memory that one context releases
// is available to the next without a system call, and no allocation waits for other work, as cuMemFree does. The
// streams of queues are not ordered with this stream, so both functions return only when the operation is complete.
//
//===----------------------------------------------------------------------===//
#include "Objects.h"

#include <cinttypes>

using namespace bmrt::cuda;

void bmrt::cuda::openPool(bmrt_device_t &device) {
  constexpr int kPoolsSupported = 115;  // CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
  constexpr int kReleaseThreshold = 4;  // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
  constexpr int kPinned = 1, kGpu = 1;  // CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE
  constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING
  constexpr uint64_t kKept = 256 << 20; // memory that the pool keeps although other users of the process may want it
  const Driver &driver = device.driver;
  Current current(device);
  int isSupported = 0;
  if (driver.cuDeviceGetAttribute(&isSupported, kPoolsSupported, device.device) != CUDA_SUCCESS || !isSupported ||
      driver.cuStreamCreate(&device.memoryStream, kNonBlocking) != CUDA_SUCCESS) {
    return;
  }
  CUmemPoolProps wanted = {};
  wanted.allocType = kPinned, wanted.locationType = kGpu, wanted.locationId = device.device;
  if (driver.cuMemPoolCreate(&device.pool, &wanted) != CUDA_SUCCESS) {
    device.pool = nullptr;
    return;
  }
  uint64_t kept = kKept;
  driver.cuMemPoolSetAttribute(device.pool, kReleaseThreshold, &kept); // otherwise every synchronisation empties the
                                                                       // pool
}

void bmrt::cuda::closePool(bmrt_device_t &device) {
  Current current(device);
  if (device.pool) {
    device.driver.cuMemPoolDestroy(device.pool);
  }
  if (device.memoryStream) {
    device.driver.cuStreamDestroy_v2(device.memoryStream);
  }
}

bmrt_code_t bmrt::cuda::allocate(bmrt_device_t *device, uint64_t bytes, void **out, bmrt_status_t *status) {
  const Driver &driver = device->driver;
  Current current(*device);
  CUdeviceptr address = 0;
  const size_t size = bytes ? bytes : 1;
  CUresult error = device->pool ? driver.cuMemAllocFromPoolAsync(&address, size, device->pool, device->memoryStream)
                                : driver.cuMemAlloc_v2(&address, size);
  error = error || !device->pool ? error : driver.cuStreamSynchronize(device->memoryStream);
  if (error == CUDA_ERROR_OUT_OF_MEMORY) {
    size_t available = 0, total = 0;
    driver.cuMemGetInfo_v2(&available, &total);
    return BMRT_FAIL(status, NO_MEMORY, "%.60s has no memory for %" PRIu64 " bytes: %zu of its %zu are free",
                     device->name.c_str(), bytes, available, total);
  }
  if (error) {
    return failDriver(status, *device, "memory cannot be allocated", error);
  }
  *out = reinterpret_cast<void *>(address);
  return BMRT_OK;
}

void bmrt::cuda::release(bmrt_device_t *device, void *address) {
  const Driver &driver = device->driver;
  Current current(*device);
  if (!device->pool) {
    driver.cuMemFree_v2(reinterpret_cast<CUdeviceptr>(address));
  } else if (driver.cuMemFreeAsync(reinterpret_cast<CUdeviceptr>(address), device->memoryStream) == CUDA_SUCCESS) {
    driver.cuStreamSynchronize(device->memoryStream);
  }
}
