// SPDX-License-Identifier: Apache-2.0
//===- CudaBackend.cpp - Runs models on NVIDIA's GPUs ---------------------===//
//
// Uses one primary context per device, shared with other CUDA code of the process, and one stream per queue
// (Queue.cpp).
//
//===----------------------------------------------------------------------===//
#include "Objects.h"

#include <cinttypes>
#include <cstdlib>
#include <memory>

using namespace bmrt::cuda;
using bmodel::cuda::Image;
using bmodel::cuda::Launch;

bool bmrt::cuda::isFault(CUresult error) {
  switch (error) {
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_LAUNCH_FAILED:
    return true;
  default:
    return false;
  }
}

bmrt_code_t bmrt::cuda::failDriver(bmrt_status_t *status, const bmrt_device_t &device, const char *what,
                                   CUresult error) {
  return BMRT_FAIL(status, IO, "%.300s on %.60s: %s%s", what, device.name.c_str(), device.driver.textOf(error),
                   isFault(error) ? ". The GPU's context is lost: nothing more runs on it in this process" : "");
}

namespace {

bmrt_code_t describeDevice(const Driver &driver, CUdevice device, std::string &name, int &capability,
                           bmrt_status_t *status) {
  constexpr int kMajor = 75, kMinor = 76; // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_..
  char text[80] = "";
  int major = 0, minor = 0;
  CUresult error = driver.cuDeviceGetName(text, sizeof text, device);
  error = error ? error : driver.cuDeviceGetAttribute(&major, kMajor, device);
  error = error ? error : driver.cuDeviceGetAttribute(&minor, kMinor, device);
  if (error) {
    return BMRT_FAIL(status, UNSUPPORTED, "failed to query the properties of a GPU: %s", driver.textOf(error));
  }
  name = text, capability = 10 * major + minor;
  return BMRT_OK;
}

bmrt_code_t openDevice(const bmrt_chip_t *chip, bmrt_device_t **out, bmrt_status_t *status) {
  const Driver *driver = nullptr;
  BMRT_RETURN_IF_ERROR(loadDriver(&driver, status));
  const uint32_t asked = chip->struct_size >= sizeof *chip ? chip->ordinal : 0; // an older runtime does not pass an
                                                                                // ordinal
  const char *wanted = asked ? nullptr : getenv("BMRT_CUDA_DEVICE");
  int count = 0, ordinal = asked ? int(asked) - 1 : wanted ? atoi(wanted) : 0;
  if (CUresult error = driver->cuDeviceGetCount(&count); error || ordinal < 0 || ordinal >= count) {
    return BMRT_FAIL(status, UNSUPPORTED, "chip '%.60s' needs GPU %d, counted from 0; this machine has %d%s",
                     chip->name, ordinal, count, wanted ? " (BMRT_CUDA_DEVICE)" : "");
  }
  CUdevice device = 0;
  std::string name;
  int capability = 0;
  if (CUresult error = driver->cuDeviceGet(&device, ordinal)) {
    return BMRT_FAIL(status, UNSUPPORTED, "GPU %d cannot be opened: %s", ordinal, driver->textOf(error));
  }
  BMRT_RETURN_IF_ERROR(describeDevice(*driver, device, name, capability, status));
  if (capability < 80) {
    return BMRT_FAIL(status, UNSUPPORTED,
                     "%.60s has compute capability %d.%d, and models of family cuda need 8.0 or newer", name.c_str(),
                     capability / 10, capability % 10);
  }
  CUcontext context = nullptr;
  if (CUresult error = driver->cuDevicePrimaryCtxRetain(&context, device)) {
    return BMRT_FAIL(status, UNSUPPORTED, "failed to create a context on %.60s: %s", name.c_str(),
                     driver->textOf(error));
  }
  auto result = std::make_unique<bmrt_device_t>(
      bmrt_device_t{*driver, device, context, std::move(name), capability, nullptr, nullptr});
  openPool(*result);
  *out = result.release();
  return BMRT_OK;
}

bmrt_code_t open(const bmrt_chip_t *chip, bmrt_device_t **out, bmrt_status_t *status) {
  return guarded(status, [&] { return openDevice(chip, out, status); });
}

void close(bmrt_device_t *device) {
  closePool(*device);
  device->driver.cuDevicePrimaryCtxRelease_v2(device->device);
  delete device;
}

bmrt_code_t check(bmrt_device_t *, const bmrt_subnet_t *subnet, bmrt_status_t *status) {
  using namespace bmodel::cuda;
  return subnet->code_version >= kVersion && subnet->code_version <= kVersionSizes
             ? BMRT_OK
             : BMRT_FAIL(status, UNSUPPORTED,
                         "subnet '%.60s' has programs of version %" PRIu32 "; this runtime runs versions %" PRIu32
                         " to %" PRIu32 ": deploy the model anew",
                         subnet->name, subnet->code_version, kVersion, kVersionSizes);
}

/// Returns true if a device runs an image: PTX for its compute capability or an older one, or machine code for the same
/// major version and an equal or older minor version.
bool runs(const bmrt_device_t &device, const Image &image) {
  int wanted = int(image.computeCapability);
  return image.isMachineCode ? device.computeCapability / 10 == wanted / 10 && device.computeCapability >= wanted
                             : device.computeCapability >= wanted;
}

/// Loads the image. Sets |hasNoBinary| if it is machine code that the driver turns out not to support.
bmrt_code_t loadImage(bmrt_program_t &program, const unsigned char *code, const Image &image, bool &hasNoBinary,
                      bmrt_status_t *status) {
  constexpr int kLog = 5, kLogBytes = 6; // CU_JIT_ERROR_LOG_BUFFER, .._SIZE_BYTES
  char log[400] = "";
  int options[] = {kLog, kLogBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log - 1)};
  const bmrt_device_t &device = program.device;
  CUresult error = device.driver.cuModuleLoadDataEx(&program.module, code + image.offset, 2, options, values);
  hasNoBinary = error == CUDA_ERROR_NO_BINARY_FOR_GPU && image.isMachineCode;
  if (hasNoBinary) {
    return BMRT_UNSUPPORTED; // without a message: the caller tries PTX next
  }
  return error ? BMRT_FAIL(status, IO, "%.60s rejects the model's %s: %s%s%.300s", device.name.c_str(),
                           image.isMachineCode ? "machine code" : "PTX", device.driver.textOf(error), *log ? ": " : "",
                           log)
               : BMRT_OK;
}

void unload(bmrt_program_t *program) {
  Current current(program->device);
  if (program->module) {
    program->device.driver.cuModuleUnload(program->module);
  }
  delete program;
}

/// Loads machine code if the device runs it, because it needs no compilation; otherwise PTX, which the driver compiles.
bmrt_code_t loadModule(bmrt_program_t &program, const unsigned char *code, bmrt_status_t *status) {
  const bmrt_device_t &device = program.device;
  for (uint32_t isMachineCode : {1, 0}) {
    for (const Image &image : program.tables.images) {
      if (image.isMachineCode != isMachineCode || !runs(device, image)) {
        continue;
      }
      bool hasNoBinary = false;
      if (bmrt_code_t result = loadImage(program, code, image, hasNoBinary, status); !hasNoBinary) {
        return result;
      }
    }
  }
  unsigned wanted = program.tables.images[0].computeCapability;
  return BMRT_FAIL(status, UNSUPPORTED, "%.60s has compute capability %d.%d, the model's code is for %u.%u",
                   device.name.c_str(), device.computeCapability / 10, device.computeCapability % 10, wanted / 10,
                   wanted % 10);
}

bmrt_code_t loadProgram(bmrt_program_t &program, const unsigned char *code, uint64_t bytes, bmrt_status_t *status) {
  const bmrt_device_t &device = program.device;
  BMRT_RETURN_IF_ERROR(readTables(code, bytes, program.tables, status));
  BMRT_RETURN_IF_ERROR(loadModule(program, code, status));
  for (const bmodel::cuda::Kernel &kernel : program.tables.kernels) {
    const char *name = reinterpret_cast<const char *>(code + kernel.nameOffset);
    CUfunction function = nullptr;
    if (CUresult error = device.driver.cuModuleGetFunction(&function, program.module, name)) {
      return BMRT_FAIL(status, CORRUPT, "the model's code has no kernel '%.100s': %s", name,
                       device.driver.textOf(error));
    }
    program.functions.push_back(function);
    program.sharedBytes.push_back(0);
  }
  return BMRT_OK;
}

bmrt_code_t load(bmrt_device_t *device, const unsigned char *code, uint64_t bytes, bmrt_program_t **out,
                 bmrt_status_t *status) {
  return guarded(status, [&] {
    Current current(*device);
    auto program = std::make_unique<bmrt_program_t>(bmrt_program_t{*device, {}, nullptr, {}, {}});
    bmrt_code_t result = loadProgram(*program, code, bytes, status);
    bmrt_program_t *made = program.release();
    result == BMRT_OK ? void(*out = made) : unload(made);
    return result;
  });
}

/// Allows the launch's kernel to use the dynamic shared memory that it requests. The driver requires this for more than
/// 48 KiB.
bmrt_code_t allowShared(bmrt_program_t &program, const Launch &launch, const char *layer, bmrt_status_t *status) {
  constexpr int kStatic = 1, kMostDynamic = 8; // CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, .._MAX_DYNAMIC_SHARED_SIZE_BYTES
  constexpr int kMostOfBlock = 97;             // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
  const bmrt_device_t &device = program.device;
  const CUfunction function = program.functions[launch.kernel];
  uint32_t &allowed = program.sharedBytes[launch.kernel];
  if (launch.sharedBytes <= allowed) {
    return BMRT_OK;
  }
  int own = 0, most = 0;
  CUresult error = device.driver.cuFuncGetAttribute(&own, kStatic, function);
  error = error ? error : device.driver.cuDeviceGetAttribute(&most, kMostOfBlock, device.device);
  const uint64_t needed = uint64_t(launch.sharedBytes) + uint64_t(own);
  if (!error && needed <= 48 << 10) {
    return BMRT_OK;
  }
  if (!error && needed > uint64_t(most)) {
    return BMRT_FAIL(status, UNSUPPORTED,
                     "layer %.100s needs %" PRIu64
                     " bytes of shared memory a block, and %.60s has %d: deploy the model "
                     "for its compute capability",
                     layer, needed, device.name.c_str(), most);
  }
  error = error ? error : device.driver.cuFuncSetAttribute(function, kMostDynamic, int(launch.sharedBytes));
  if (error) {
    return failDriver(status, device, "a kernel's shared memory cannot be set", error);
  }
  allowed = launch.sharedBytes;
  return BMRT_OK;
}

bmrt_code_t verify(bmrt_program_t *program, const bmrt_stream_t *stream, bmrt_status_t *status) {
  return guarded(status, [&] {
    Current current(program->device);
    std::vector<Command> commands;
    BMRT_RETURN_IF_ERROR(verifyStream(program->tables, *stream, commands, status));
    for (const Command &command : commands) {
      const char *layer = command.launch.layer < stream->layer_count ? stream->layers[command.launch.layer] : "?";
      BMRT_RETURN_IF_ERROR(allowShared(*program, command.launch, layer, status));
    }
    return bmrt_code_t(BMRT_OK);
  });
}

} // namespace

extern "C" BMRT_API const bmrt_backend_t bmrt_backend = {.abi = BMRT_BACKEND_ABI,
                                                         .flags = BMRT_BACKEND_RETURNS_EARLY,
                                                         .struct_size = sizeof(bmrt_backend_t),
                                                         .family = "cuda",
                                                         .open = open,
                                                         .close = close,
                                                         .allocate = allocate,
                                                         .release = release,
                                                         .check = check,
                                                         .load = load,
                                                         .unload = unload,
                                                         .find_kernel = nullptr,
                                                         .find_contract = nullptr,
                                                         .verify = verify,
                                                         .make_queue = makeQueue,
                                                         .destroy_queue = destroyQueue,
                                                         .copy = copy,
                                                         .run = run,
                                                         .launch = nullptr,
                                                         .wait = wait,
                                                         .use_stream = useStream,
                                                         .run_timed = runTimed,
                                                         .is_done = isDone};
