//===- DeviceMemory.cpp - Allocations and copies --------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Driver/Driver.h"

#include <algorithm>
#include <cstring>
#include <sstream>

using namespace ptx;

namespace {

CUresult allocate(CUcontext context, const char *call, CUdeviceptr *address, size_t bytes) {
  Driver &machine = driver();
  if (!address || bytes == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Lock lock(machine.mutex);
  if (++machine.allocations == machine.options.failAllocation) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  std::string name = std::string(call) + " no. " + std::to_string(machine.allocations);
  AllocationRef result = machine.memory.allocate(bytes, name, machine.options.memoryBytes);
  if (!result) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  result->device = context->device;
  machine.owners[result->base] = context;
  *address = result->base;
  return CUDA_SUCCESS;
}

CUresult allocateHost(const char *call, void **memory, size_t bytes) {
  CUcontext context = nullptr;
  CUresult result = currentContext(context);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  if (!memory || bytes == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Driver &machine = driver();
  Lock lock(machine.mutex);
  if (++machine.allocations == machine.options.failAllocation) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  void *made = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!made) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  machine.memory.adopt(made, bytes, std::string(call) + " no. " + std::to_string(machine.allocations))->owned = made;
  *memory = made;
  return CUDA_SUCCESS;
}

CUresult freeHost(void *memory, bool isOwned) {
  CUcontext context = nullptr;
  CUresult result = currentContext(context);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  AllocationRef found = driver().memory.find(reinterpret_cast<uint64_t>(memory));
  if (!found || !found->isHost || found->base != reinterpret_cast<uint64_t>(memory) ||
      (found->owned != nullptr) != isOwned) {
    return isOwned ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  finishAll(context);
  driver().memory.release(found->base);
  return CUDA_SUCCESS;
}

bool isInside(const AllocationRef &allocation, uint64_t address, size_t bytes) {
  return allocation && bytes <= allocation->bytes && address - allocation->base <= allocation->bytes - bytes;
}

/// One side of a copy: device memory, pinned memory, or pageable memory that the driver does not know.
struct Side {
  uint64_t address;
  AllocationRef allocation;
  bool isPageable() const { return !allocation; }
  bool isDevice() const { return allocation && !allocation->isHost; }
};

void copyBytes(const Side &to, const Side &from, size_t bytes, const uint8_t *staged) {
  uint64_t source = from.address - (from.allocation ? from.allocation->base : 0);
  uint64_t target = to.address - (to.allocation ? to.allocation->base : 0);
  bool isChecked = driver().options.initialised && from.isDevice();
  if (isChecked && !to.isDevice() && !from.allocation->written.has(source, bytes)) {
    std::ostringstream text;
    text << "a copy of " << bytes << " bytes from the device at address 0x" << std::hex << from.address << std::dec
         << ": uninitialised, nobody wrote byte " << from.allocation->written.firstMissing(source, bytes) << " of "
         << from.allocation->name << " (" << from.allocation->bytes << " bytes)";
    throw Fault{Fault::IllegalAddress, text.str()};
  }
  std::memmove(reinterpret_cast<void *>(to.address), staged ? staged : reinterpret_cast<const uint8_t *>(from.address),
               bytes);
  if (to.isDevice()) {
    if (from.isDevice()) {
      to.allocation->written.copy(target, from.allocation->written, source, bytes);
    } else {
      to.allocation->written.add(target, bytes);
    }
  }
}

/// |isDeviceTo| and |isDeviceFrom|: the call declares that side as device memory; pinned memory is accepted as well.
CUresult copy(CUdeviceptr to, bool isDeviceTo, CUdeviceptr from, bool isDeviceFrom, size_t bytes, CUstream stream,
              bool isAsync, bool isBlocking) {
  CUcontext context = nullptr;
  CUresult result = currentContext(context);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  if (!isAsync && (result = rejectInCapture(context)) != CUDA_SUCCESS) {
    return result;
  }
  WorkRef work;
  bool mustWait = isBlocking;
  {
    Lock lock(driver().mutex);
    if ((result = findStream(context, stream)) != CUDA_SUCCESS || bytes == 0) {
      return result;
    }
    Side target{to, driver().memory.find(to)}, source{from, driver().memory.find(from)};
    bool isBad = (isDeviceTo && !target.allocation) || (isDeviceFrom && !source.allocation) ||
                 (target.allocation && !isInside(target.allocation, to, bytes)) ||
                 (source.allocation && !isInside(source.allocation, from, bytes));
    if (isBad) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    // Pageable source memory is read when the call is made; a copy to pageable memory completes before the call
    // returns.
    std::shared_ptr<std::vector<uint8_t>> staged;
    if (source.isPageable() && !stream->capture) {
      const auto *begin = reinterpret_cast<const uint8_t *>(from);
      staged = std::make_shared<std::vector<uint8_t>>(begin, begin + bytes);
    }
    mustWait = mustWait || (target.isPageable() && !stream->capture);
    result = enqueue(
        stream,
        {CU_GRAPH_NODE_TYPE_MEMCPY, {}, [=] { copyBytes(target, source, bytes, staged ? staged->data() : nullptr); }},
        &work);
  }
  return result == CUDA_SUCCESS && mustWait ? finish(context, work) : result;
}

template <class T>
CUresult fill(CUdeviceptr to, T value, size_t count, CUstream stream) {
  CUcontext context = nullptr;
  CUresult result = currentContext(context);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  Lock lock(driver().mutex);
  if ((result = findStream(context, stream)) != CUDA_SUCCESS || count == 0) {
    return result;
  }
  AllocationRef target = driver().memory.find(to);
  if (!isInside(target, to, count * sizeof(T)) || to % sizeof(T) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return enqueue(stream, {CU_GRAPH_NODE_TYPE_MEMSET, {}, [=] {
                            std::fill_n(reinterpret_cast<T *>(to), count, value);
                            target->written.add(to - target->base, count * sizeof(T));
                          }});
}

CUresult allocateAsync(CUdeviceptr *address, size_t bytes, CUstream stream) {
  CUcontext context = nullptr;
  CUresult result = currentContext(context);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  Lock lock(driver().mutex);
  if ((result = findStream(context, stream)) != CUDA_SUCCESS) {
    return result;
  }
  if (stream->capture) {
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return allocate(context, "cuMemAllocAsync", address, bytes);
}

CUmemoryPool defaultPool(CUdevice device) {
  CUmemoryPool &pool = driver().defaultPools[device];
  if (!pool) {
    pool = driver().pools.add(std::make_unique<CUmemPoolHandle_st>());
    pool->device = device;
  }
  return pool;
}

} // namespace

CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
  CUcontext context = nullptr;
  CUresult result = currentContext(context);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  constexpr uint64_t kPage = 512; // granularity of Memory
  uint64_t used = 0;              // bytes used on this device
  for (const AllocationRef &each : driver().memory.all()) {
    used += !each->isHost && each->device == context->device ? (each->bytes + kPage - 1) / kPage * kPage : 0;
  }
  *total = driver().options.memoryBytes;
  *available = *total - std::min<uint64_t>(*total, used);
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  CUcontext context = nullptr;
  CUresult result = currentContext(context);
  result = result == CUDA_SUCCESS ? rejectInCapture(context) : result;
  return result == CUDA_SUCCESS ? allocate(context, "cuMemAlloc", address, bytes) : result;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  CUcontext context = nullptr;
  CUresult result = currentContext(context);
  result = result == CUDA_SUCCESS ? rejectInCapture(context) : result;
  if (result != CUDA_SUCCESS || address == 0) {
    return result;
  }
  result = finishAll(context);
  Lock lock(driver().mutex);
  if (driver().owners.erase(address) == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  driver().memory.release(address);
  return result;
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream) {
  return allocateAsync(address, bytes, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream) {
  {
    Lock lock(driver().mutex);
    if (!driver().pools.has(pool)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return allocateAsync(address, bytes, stream);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  CUcontext context = nullptr;
  CUresult result = currentContext(context);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  Lock lock(driver().mutex);
  if ((result = findStream(context, stream)) != CUDA_SUCCESS) {
    return result;
  }
  if (stream->capture) {
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (driver().owners.erase(address) == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // The context owns the memory until then, in case the context is destroyed first.
  driver().owners[address] = context;
  return enqueue(stream, {CU_GRAPH_NODE_TYPE_EMPTY, {}, [address] {
                            Lock inner(driver().mutex);
                            driver().owners.erase(address);
                            driver().memory.release(address);
                          }});
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
  Lock lock(driver().mutex);
  *pool = driver().pools.add(std::make_unique<CUmemPoolHandle_st>());
  (*pool)->device = properties->location.id;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  Lock lock(driver().mutex);
  if (!driver().pools.has(pool)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  driver().pools.remove(pool);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t) {
  Lock lock(driver().mutex);
  return driver().pools.has(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
  Lock lock(driver().mutex);
  if (!driver().pools.has(pool)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  pool->attributes[attribute] = attribute < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? uint64_t(*static_cast<int *>(value))
                                                                              : *static_cast<uint64_t *>(value);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
  Lock lock(driver().mutex);
  if (!driver().pools.has(pool)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  uint64_t result =
      attribute > CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? driver().memory.used() : pool->attributes[attribute];
  if (attribute < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    *static_cast<int *>(value) = int(result);
  } else {
    *static_cast<uint64_t *>(value) = result;
  }
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
  Lock lock(driver().mutex);
  *pool = defaultPool(device);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) { return cuDeviceGetDefaultMemPool(pool, device); }

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  Lock lock(driver().mutex);
  if (!driver().pools.has(pool)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  driver().defaultPools[device] = pool;
  return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned int) {
  return allocateHost("cuMemHostAlloc", memory, bytes);
}

CUresult cuMemAllocHost_v2(void **memory, size_t bytes) { return allocateHost("cuMemAllocHost", memory, bytes); }

CUresult cuMemFreeHost(void *memory) { return freeHost(memory, true); }

CUresult cuMemHostRegister_v2(void *memory, size_t bytes, unsigned int) {
  CUcontext context = nullptr;
  CUresult result = currentContext(context);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  if (!memory || bytes == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto begin = reinterpret_cast<uint64_t>(memory);
  if (driver().memory.find(begin) || driver().memory.find(begin + bytes - 1)) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  driver().memory.adopt(memory, bytes, "registered host memory");
  return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *memory) { return freeHost(memory, false); }

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *memory, unsigned int) {
  AllocationRef found = driver().memory.find(reinterpret_cast<uint64_t>(memory));
  if (!found || !found->isHost) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *address = reinterpret_cast<uint64_t>(memory);
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address) {
  Lock lock(driver().mutex);
  AllocationRef found = driver().memory.find(address);
  if (!found) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  switch (attribute) {
  case CU_POINTER_ATTRIBUTE_CONTEXT: {
    auto owner = driver().owners.find(found->base);
    *static_cast<CUcontext *>(value) = owner == driver().owners.end() ? nullptr : owner->second;
    return CUDA_SUCCESS;
  }
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    *static_cast<unsigned *>(value) = found->isHost ? 1 : 2;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    *static_cast<CUdeviceptr *>(value) = address;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    *static_cast<CUdeviceptr *>(value) = found->isHost ? address : 0;
    return found->isHost ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    *static_cast<int *>(value) = found->device;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    *static_cast<CUdeviceptr *>(value) = found->base;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    *static_cast<size_t *>(value) = found->bytes;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy(to, false, from, false, bytes, nullptr, false, true);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(to, false, from, false, bytes, stream, true, false);
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
  return copy(to, true, reinterpret_cast<CUdeviceptr>(from), false, bytes, nullptr, false, true);
}
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
  return copy(reinterpret_cast<CUdeviceptr>(to), false, from, true, bytes, nullptr, false, true);
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy(to, true, from, true, bytes, nullptr, false, false);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  return copy(to, true, reinterpret_cast<CUdeviceptr>(from), false, bytes, stream, true, false);
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(reinterpret_cast<CUdeviceptr>(to), false, from, true, bytes, stream, true, false);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(to, true, from, true, bytes, stream, true, false);
}
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) { return fill(to, value, count, nullptr); }
CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) { return fill(to, value, count, nullptr); }
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count) { return fill(to, value, count, nullptr); }
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return fill(to, value, count, stream);
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return fill(to, value, count, stream);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  return fill(to, value, count, stream);
}
