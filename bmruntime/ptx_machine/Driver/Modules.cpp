//===- Modules.cpp - Modules and functions --------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Driver/Driver.h"

#include <algorithm>
#include <cstring>

using namespace ptx;

namespace {

/// Returns the newest PTX version that a driver supports, as 10 * major + minor: 8.0 with CUDA 12.0, and then one minor
/// version with each minor version of CUDA.
unsigned newestPtx(int driverVersion) {
  int major = driverVersion / 1000, minor = driverVersion % 1000 / 10;
  return unsigned(10 * (major - 4) + minor);
}

/// Writes |text| to the buffer of a JIT option, and the number of bytes written to its size option.
void fillLog(unsigned count, const CUjit_option *options, void **values, CUjit_option buffer, CUjit_option size,
             const std::string &text) {
  void *to = nullptr;
  void **bytes = nullptr;
  for (unsigned i = 0; i < count; ++i) {
    to = options[i] == buffer ? values[i] : to;
    bytes = options[i] == size ? values + i : bytes;
  }
  if (!bytes) {
    return;
  }
  auto room = size_t(reinterpret_cast<uintptr_t>(*bytes) & 0xffffffff);
  size_t length = room == 0 ? 0 : std::min(text.size(), room - 1);
  if (to && room != 0) {
    std::memcpy(to, text.data(), length);
    static_cast<char *>(to)[length] = 0;
  }
  *bytes = reinterpret_cast<void *>(uintptr_t(text.empty() ? 0 : length + 1));
}

/// Allocates the module's global and constant variables. Returns false if the device is full.
bool layGlobals(CUmod_st &result, const Module &module) {
  Driver &machine = driver();
  for (const Variable *each : module.globals) {
    if (each->space == Space::Shared) {
      continue;
    }
    if (each->isExternal) {
      throw LoadError(1, "'" + each->name + "' is not defined in any module");
    }
    AllocationRef memory = machine.memory.allocate(std::max<uint64_t>(each->size, 1), "variable '" + each->name + "'",
                                                   machine.options.memoryBytes);
    if (!memory) {
      return false;
    }
    memory->device = result.context->device;
    auto *bytes = reinterpret_cast<uint8_t *>(memory->base);
    std::memset(bytes, 0, each->size);
    std::copy(each->initial.begin(), each->initial.end(), bytes);
    memory->written.add(0, each->size);
    result.symbols[each->name] = {memory->base, each->size};
    machine.owners[memory->base] = result.context;
  }
  return true;
}

CUresult load(CUmod_st &result, const char *image, std::string &error) {
  Driver &machine = driver();
  bool isBinary = std::memcmp(image, "\177ELF", 4) == 0 || std::memcmp(image, "\x50\xed\x55\xba", 4) == 0;
  if (isBinary) {
    error = "machine code: the PTX machine executes PTX only";
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  try {
    Module module = parse(image);
    if (module.version > newestPtx(machine.options.driverVersion)) {
      error = "PTX version " + std::to_string(module.version / 10) + "." + std::to_string(module.version % 10) +
              " is newer than the driver";
      return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    }
    if (int(module.target) > machine.options.capability) {
      error = "SM version specified by .target is higher than default SM version assumed";
      return CUDA_ERROR_INVALID_PTX;
    }
    result.version = int(module.version);
    result.target = int(module.target);
    if (!layGlobals(result, module)) {
      error = "no memory for the module's variables";
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (const Function &each : module.functions) {
      if (each.isEntry && each.hasBody) {
        auto function = std::make_unique<CUfunc_st>();
        function->module = &result;
        function->kernel = std::make_shared<const Kernel>(decode(module, each, result.symbols));
        function->maxDynamicShared = std::max(0, (48 << 10) - int(function->kernel->sharedBytes));
        result.functions[each.name] = std::move(function);
      }
    }
  } catch (const LoadError &failure) {
    error = std::string("ptxas application ptx input, ") + failure.what();
    return CUDA_ERROR_INVALID_PTX;
  }
  return CUDA_SUCCESS;
}

void forget(CUmod_st &module) {
  for (auto &each : module.symbols) {
    driver().memory.release(each.second.address);
    driver().owners.erase(each.second.address);
  }
}

} // namespace

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, CUjit_option *options,
                            void **values) {
  CUcontext context = nullptr;
  CUresult result = currentContext(context);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  if (!module || !image) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Lock lock(driver().mutex);
  auto made = std::make_unique<CUmod_st>();
  made->context = context;
  std::string error;
  result = load(*made, static_cast<const char *>(image), error);
  fillLog(count, options, values, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, error);
  fillLog(count, options, values, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, "");
  if (result != CUDA_SUCCESS) {
    driver().lastFinding = error;
    forget(*made);
    return result;
  }
  *module = driver().modules.add(std::move(made));
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
  CUcontext context = nullptr;
  CUresult result = currentContext(context);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  {
    Lock lock(driver().mutex);
    if (!driver().modules.has(module)) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
  }
  result = finishAll(context);
  Lock lock(driver().mutex);
  forget(*module);
  driver().modules.remove(module);
  return result;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  CUcontext context = nullptr;
  CUresult result = currentContext(context);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  Lock lock(driver().mutex);
  if (!driver().modules.has(module)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  auto found = module->functions.find(name);
  if (found == module->functions.end()) {
    return CUDA_ERROR_NOT_FOUND;
  }
  *function = found->second.get();
  return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name) {
  Lock lock(driver().mutex);
  if (!driver().modules.has(module)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  auto found = module->symbols.find(name);
  if (found == module->symbols.end()) {
    return CUDA_ERROR_NOT_FOUND;
  }
  if (address) {
    *address = found->second.address;
  }
  if (bytes) {
    *bytes = found->second.bytes;
  }
  return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
  const Kernel &kernel = *function->kernel;
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *value = kernel.maxThreads == 0 ? 1024 : int(kernel.maxThreads);
    break;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    *value = int(kernel.sharedBytes);
    break;
  case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    *value = int(kernel.localBytes);
    break;
  case CU_FUNC_ATTRIBUTE_NUM_REGS: // an estimate: the machine does not allocate registers
    *value = int(std::min(kernel.registers, 255u));
    break;
  case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    *value = function->module->version;
    break;
  case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
    *value = driver().options.capability;
    break;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *value = function->maxDynamicShared;
    break;
  default:
    *value = 0;
    break;
  }
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  Lock lock(driver().mutex);
  if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
    return value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  int room = deviceModel(driver().options.capability).sharedPerBlock - int(function->kernel->sharedBytes);
  if (value < 0 || value > room) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  function->maxDynamicShared = value;
  return CUDA_SUCCESS;
}

CUresult cuFuncSetCacheConfig(CUfunction, int) { return CUDA_SUCCESS; }

CUresult cuFuncGetName(const char **name, CUfunction function) {
  *name = function->kernel->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction function) {
  *module = function->module;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int blockSize,
                                                     size_t dynamicShared) {
  const DeviceModel &model = deviceModel(driver().options.capability);
  if (blockSize <= 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  int shared = int(function->kernel->sharedBytes + dynamicShared) + 1024;
  *blocks = std::min({model.threadsPerSm / blockSize, model.sharedPerSm / shared, model.blocksPerSm});
  return CUDA_SUCCESS;
}
