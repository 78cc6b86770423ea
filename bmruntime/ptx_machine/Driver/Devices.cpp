//===- Devices.cpp - Devices and contexts ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Driver/Driver.h"
#include "bmruntime/ptx_machine/PtxMachine.h"

#include <cstdio>
#include <cstring>

namespace ptx {

const DeviceModel &deviceModel(int capability) {
  // SMs, clock, DRAM clock and bus, L2, shared memory per SM and per block, threads and blocks per SM; from NVIDIA's
  // data sheets and the CUDA C++ Programming Guide's table of compute capabilities.
  static const DeviceModel models[] = {
      {"PTX machine (sm_80)", 80, 108, 1410000, 1215000, 5120, 40 << 20, 164 << 10, 163 << 10, 2048, 32},
      {"PTX machine (sm_86)", 86, 82, 1695000, 9751000, 384, 6 << 20, 100 << 10, 99 << 10, 1536, 16},
      {"PTX machine (sm_89)", 89, 58, 2040000, 6251000, 192, 48 << 20, 100 << 10, 99 << 10, 1536, 24},
      {"PTX machine (sm_90)", 90, 132, 1980000, 2619000, 5120, 50 << 20, 228 << 10, 227 << 10, 2048, 32},
      {"PTX machine", 0, 16, 1000000, 1000000, 256, 4 << 20, 96 << 10, 48 << 10, 1024, 16}};
  for (const DeviceModel &each : models) {
    if (each.capability == capability || each.capability == 0) {
      return each;
    }
  }
  return models[0];
}

namespace {

thread_local std::vector<CUcontext> stack;

bool isDevice(CUdevice device) { return device >= 0 && device < driver().options.devices; }

CUresult requireDevice(CUdevice device) {
  if (!driver().isInitialised) {
    return CUDA_ERROR_NOT_INITIALIZED;
  }
  return isDevice(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUcontext makeContext(CUdevice device, bool isPrimary) {
  auto result = std::make_unique<CUctx_st>();
  result->device = device;
  result->isPrimary = isPrimary;
  result->legacy = std::make_unique<CUstream_st>();
  result->legacy->context = result.get();
  return driver().contexts.add(std::move(result));
}

int attribute(CUdevice_attribute which) {
  const DeviceModel &model = deviceModel(driver().options.capability);
  switch (which) {
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
    return 1024;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
    return 64;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
    return 0x7fffffff;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
    return 65535;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
    return 48 << 10;
  case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
    return 64 << 10;
  case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
    return 32;
  case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
  case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
    return 65536;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
    return model.clockKhz;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    return model.sms;
  case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
  case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
  case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
  case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
  case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    return 1;
  case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
    return model.memoryClockKhz;
  case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
    return model.busBits;
  case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
    return model.l2Bytes;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
    return model.threadsPerSm;
  case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
    return 2;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    return driver().options.capability / 10;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    return driver().options.capability % 10;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
    return model.sharedPerSm;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    return model.sharedPerBlock;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
    return model.blocksPerSm;
  case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
    return 1024;
  default:
    return 0;
  }
}

} // namespace

CUresult currentContext(CUcontext &context) {
  if (!driver().isInitialised) {
    return CUDA_ERROR_NOT_INITIALIZED;
  }
  if (stack.empty() || !stack.back()) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  context = stack.back();
  Lock lock(driver().mutex);
  return driver().contexts.has(context) ? statusOf(context) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

void destroyContext(CUcontext context) {
  Driver &machine = driver();
  machine.scheduler.waitForAll(context);
  Lock lock(machine.mutex);
  for (auto at = machine.owners.begin(); at != machine.owners.end();) {
    if (at->second == context) {
      machine.memory.release(at->first);
      at = machine.owners.erase(at);
    } else {
      ++at;
    }
  }
  auto removeFrom = [&](auto &registry) {
    for (auto at = registry.begin(); at != registry.end();) {
      auto next = std::next(at);
      if (at->second->context == context) {
        registry.remove(at->first);
      }
      at = next;
    }
  };
  removeFrom(machine.executables);
  removeFrom(machine.modules);
  removeFrom(machine.streams);
  removeFrom(machine.events);
  machine.contexts.remove(context);
}

} // namespace ptx

using namespace ptx;

CUresult cuInit(unsigned int flags) {
  if (!ptxMachineProcessorSuffices()) { // must run before any code compiled for such a processor
    std::fprintf(stderr, "PTX machine: needs a processor with AVX2, FMA and F16C\n");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  Driver &machine = driver();
  Lock lock(machine.mutex);
  if (flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!machine.isInitialised) {
    machine.options = readOptions();
    machine.scheduler.setSeed(machine.options.seed);
  }
  if (!machine.options.hasDevice) {
    return CUDA_ERROR_NO_DEVICE;
  }
  machine.isInitialised = true;
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
  if (!version) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!ptxMachineProcessorSuffices()) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  *version = driver().isInitialised ? driver().options.driverVersion : readOptions().driverVersion;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
  if (!driver().isInitialised) {
    return CUDA_ERROR_NOT_INITIALIZED;
  }
  *count = driver().options.devices;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  CUresult result = requireDevice(ordinal);
  *device = ordinal;
  return result;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  CUresult result = requireDevice(device);
  if (result == CUDA_SUCCESS && length > 0) {
    std::strncpy(name, deviceModel(driver().options.capability).name, size_t(length));
    name[length - 1] = 0;
  }
  return result;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
  std::memset(uuid, 0, sizeof *uuid);
  std::memcpy(uuid->bytes, "PTX machine", 11);
  uuid->bytes[15] = char(device);
  return requireDevice(device);
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device) {
  CUresult result = requireDevice(device);
  if (result == CUDA_SUCCESS) {
    *value = attribute(which);
  }
  return result;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  *bytes = driver().options.memoryBytes;
  return requireDevice(device);
}

CUresult cuDeviceCanAccessPeer(int *canAccess, CUdevice device, CUdevice) {
  *canAccess = 0;
  return requireDevice(device);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  Lock lock(driver().mutex);
  CUresult result = requireDevice(device);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  CUcontext &primary = driver().primaries[device];
  if (!primary) {
    primary = makeContext(device, true);
  }
  ++primary->retained;
  *context = primary;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  CUcontext primary = nullptr;
  {
    Lock lock(driver().mutex);
    CUresult result = requireDevice(device);
    if (result != CUDA_SUCCESS) {
      return result;
    }
    std::swap(primary, driver().primaries[device]);
  }
  if (primary) {
    destroyContext(primary);
  }
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  {
    Lock lock(driver().mutex);
    CUresult result = requireDevice(device);
    if (result != CUDA_SUCCESS) {
      return result;
    }
    CUcontext primary = driver().primaries[device];
    if (!primary) {
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (--primary->retained > 0) {
      return CUDA_SUCCESS;
    }
  }
  return cuDevicePrimaryCtxReset_v2(device);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int) { return requireDevice(device); }

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *isActive) {
  Lock lock(driver().mutex);
  CUresult result = requireDevice(device);
  *flags = 0;
  *isActive = result == CUDA_SUCCESS && driver().primaries[device] != nullptr;
  return result;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int, CUdevice device) {
  Lock lock(driver().mutex);
  CUresult result = requireDevice(device);
  if (result == CUDA_SUCCESS) {
    *context = makeContext(device, false);
    stack.push_back(*context);
  }
  return result;
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  {
    Lock lock(driver().mutex);
    if (!driver().contexts.has(context) || context->isPrimary) {
      return CUDA_ERROR_INVALID_CONTEXT;
    }
  }
  if (!stack.empty() && stack.back() == context) {
    stack.pop_back();
  }
  destroyContext(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  Lock lock(driver().mutex);
  if (!driver().contexts.has(context)) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  stack.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  if (stack.empty()) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (context) {
    *context = stack.back();
  }
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  Lock lock(driver().mutex);
  if (context && !driver().contexts.has(context)) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (!stack.empty()) {
    stack.pop_back();
  }
  if (context) {
    stack.push_back(context);
  }
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
  *context = stack.empty() ? nullptr : stack.back();
  return driver().isInitialised ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult cuCtxGetDevice(CUdevice *device) {
  CUcontext context = nullptr;
  CUresult result = currentContext(context);
  *device = context ? context->device : 0;
  return result;
}

CUresult cuCtxSynchronize() {
  CUcontext context = nullptr;
  CUresult result = currentContext(context);
  result = result == CUDA_SUCCESS ? rejectInCapture(context) : result;
  return result == CUDA_SUCCESS ? finishAll(context) : result;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return CUDA_SUCCESS;
}
