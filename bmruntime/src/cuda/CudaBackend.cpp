// SPDX-License-Identifier: Apache-2.0
//===- CudaBackend.cpp - Runs models on NVIDIA's GPUs ---------------------===//
//
// One primary context a device, shared with whatever else of the process uses it; a stream a queue. The launches of a
// step are captured into a graph when it first runs, and again when its tensors lie elsewhere.
//
//===----------------------------------------------------------------------===//
#include "../core/Status.h"
#include "Driver.h"
#include "Program.h"
#include "bmrt/backend.h"

#include <cinttypes>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <string>

using namespace bmrt::cuda;
using bmodel::cuda::Argument;
using bmodel::cuda::ArgumentKind;
using bmodel::cuda::Image;
using bmodel::cuda::Launch;

struct bmrt_device_t {
  const Driver &driver;
  CUdevice device;
  CUcontext context;
  std::string name;
  int computeCapability;
};

struct bmrt_program_t {
  bmrt_device_t &device;
  Tables tables;
  CUmodule module = nullptr;
  std::vector<CUfunction> functions;
};

namespace {

/// What a graph was captured from.
struct Captured {
  std::vector<uint64_t> bindings; ///< addresses and dims
  CUgraphExec graph;
};

} // namespace

struct bmrt_queue_t {
  bmrt_device_t &device;
  CUstream stream = nullptr;
  std::map<std::pair<const bmrt_program_t *, uint64_t>, Captured> graphs; ///< by the stream's offset
  std::string last;                                                       ///< what a fault may have happened in
};

namespace {

/// Makes the device's context the thread's for a while.
class Current {
public:
  explicit Current(const bmrt_device_t &device) : driver(device.driver) {
    isPushed = driver.cuCtxPushCurrent_v2(device.context) == CUDA_SUCCESS;
  }
  ~Current() {
    CUcontext popped;
    if (isPushed) {
      driver.cuCtxPopCurrent_v2(&popped);
    }
  }
  Current(const Current &) = delete;
  Current &operator=(const Current &) = delete;

private:
  const Driver &driver;
  bool isPushed;
};

/// |body|'s code, or that there is no memory of the host's.
template <typename Body>
bmrt_code_t guarded(bmrt_status_t *status, Body body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory of the host's for the back end of family cuda");
  }
}

bool isFault(CUresult error) { return error >= CUDA_ERROR_ILLEGAL_ADDRESS && error <= CUDA_ERROR_LAUNCH_FAILED; }

bmrt_code_t failDriver(bmrt_status_t *status, const bmrt_device_t &device, const char *what, CUresult error) {
  return BMRT_FAIL(status, IO, "%.300s on %.60s: %s%s", what, device.name.c_str(), device.driver.textOf(error),
                   isFault(error) ? ". The GPU's context is lost: nothing more runs on it in this process" : "");
}

/// As failDriver; a fault of a kernel that ran before is told by whatever comes behind it.
bmrt_code_t failQueue(bmrt_status_t *status, const bmrt_queue_t &queue, const char *what, CUresult error) {
  if (!isFault(error) || queue.last.empty()) {
    return failDriver(status, queue.device, what, error);
  }
  std::string text = "one of the layers " + queue.last + " failed (BMRT_CUDA_BLOCKING=1 tells which)";
  return failDriver(status, queue.device, text.c_str(), error);
}

bmrt_code_t describeDevice(const Driver &driver, CUdevice device, std::string &name, int &capability,
                           bmrt_status_t *status) {
  constexpr int kMajor = 75, kMinor = 76; // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_..
  char text[80] = "";
  int major = 0, minor = 0;
  CUresult error = driver.cuDeviceGetName(text, sizeof text, device);
  error = error ? error : driver.cuDeviceGetAttribute(&major, kMajor, device);
  error = error ? error : driver.cuDeviceGetAttribute(&minor, kMinor, device);
  if (error) {
    return BMRT_FAIL(status, UNSUPPORTED, "a GPU cannot be asked what it is: %s", driver.textOf(error));
  }
  name = text, capability = 10 * major + minor;
  return BMRT_OK;
}

bmrt_code_t openDevice(const bmrt_chip_t *chip, bmrt_device_t **out, bmrt_status_t *status) {
  const Driver *driver = nullptr;
  BMRT_RETURN_IF_ERROR(loadDriver(&driver, status));
  const char *wanted = getenv("BMRT_CUDA_DEVICE");
  int count = 0, ordinal = wanted ? atoi(wanted) : 0;
  if (CUresult error = driver->cuDeviceGetCount(&count); error || ordinal < 0 || ordinal >= count) {
    return BMRT_FAIL(status, UNSUPPORTED, "chip '%.60s' wants GPU %d, and this machine has %d%s", chip->name, ordinal,
                     count, wanted ? " (BMRT_CUDA_DEVICE)" : "");
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
    return BMRT_FAIL(status, UNSUPPORTED, "%.60s gives no context: %s", name.c_str(), driver->textOf(error));
  }
  *out = new bmrt_device_t{*driver, device, context, std::move(name), capability};
  return BMRT_OK;
}

bmrt_code_t open(const bmrt_chip_t *chip, bmrt_device_t **out, bmrt_status_t *status) {
  return guarded(status, [&] { return openDevice(chip, out, status); });
}

void close(bmrt_device_t *device) {
  device->driver.cuDevicePrimaryCtxRelease_v2(device->device);
  delete device;
}

bmrt_code_t allocate(bmrt_device_t *device, uint64_t bytes, void **out, bmrt_status_t *status) {
  Current current(*device);
  CUdeviceptr address = 0;
  CUresult error = device->driver.cuMemAlloc_v2(&address, bytes ? bytes : 1);
  if (error == CUDA_ERROR_OUT_OF_MEMORY) {
    size_t available = 0, total = 0;
    device->driver.cuMemGetInfo_v2(&available, &total);
    return BMRT_FAIL(status, NO_MEMORY, "%.60s has no memory for %" PRIu64 " bytes: %zu of its %zu are free",
                     device->name.c_str(), bytes, available, total);
  }
  if (error) {
    return failDriver(status, *device, "memory cannot be allocated", error);
  }
  *out = reinterpret_cast<void *>(address);
  return BMRT_OK;
}

void release(bmrt_device_t *device, void *address) {
  Current current(*device);
  device->driver.cuMemFree_v2(reinterpret_cast<CUdeviceptr>(address));
}

bmrt_code_t check(bmrt_device_t *, const bmrt_subnet_t *subnet, bmrt_status_t *status) {
  return subnet->code_version == bmodel::cuda::kVersion
             ? BMRT_OK
             : BMRT_FAIL(status, UNSUPPORTED,
                         "subnet '%.60s' has programs of version %" PRIu32 "; this runtime runs version %" PRIu32
                         ": deploy the model anew",
                         subnet->name, subnet->code_version, bmodel::cuda::kVersion);
}

/// Whether a device runs an image: PTX from its compute capability on, machine code of the same major one.
bool runs(const bmrt_device_t &device, const Image &image) {
  int wanted = int(image.computeCapability);
  return image.isMachineCode ? device.computeCapability / 10 == wanted / 10 && device.computeCapability >= wanted
                             : device.computeCapability >= wanted;
}

/// Loads the image; |hasNoBinary|: it is machine code that the driver has no use for after all.
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
    return BMRT_UNSUPPORTED; // without a message: PTX is tried
  }
  return error ? BMRT_FAIL(status, IO, "%.60s does not take the model's %s: %s%s%.300s", device.name.c_str(),
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

/// Machine code where the device runs it, for it needs no compiler; else PTX, which the driver compiles.
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
  }
  return BMRT_OK;
}

bmrt_code_t load(bmrt_device_t *device, const unsigned char *code, uint64_t bytes, bmrt_program_t **out,
                 bmrt_status_t *status) {
  return guarded(status, [&] {
    Current current(*device);
    auto program = std::make_unique<bmrt_program_t>(bmrt_program_t{*device, {}, nullptr, {}});
    bmrt_code_t result = loadProgram(*program, code, bytes, status);
    bmrt_program_t *made = program.release();
    result == BMRT_OK ? void(*out = made) : unload(made);
    return result;
  });
}

bmrt_code_t verify(bmrt_program_t *program, const bmrt_stream_t *stream, bmrt_status_t *status) {
  return guarded(status, [&] { return verifyStream(program->tables, *stream, status); });
}

bmrt_code_t makeQueue(bmrt_device_t *device, bmrt_queue_t **out, bmrt_status_t *status) {
  return guarded(status, [&] {
    constexpr unsigned kNonBlocking = 1; // CU_STREAM_NON_BLOCKING
    Current current(*device);
    auto queue = std::make_unique<bmrt_queue_t>(bmrt_queue_t{*device, nullptr, {}, {}});
    if (CUresult error = device->driver.cuStreamCreate(&queue->stream, kNonBlocking)) {
      return failDriver(status, *device, "a stream cannot be made", error);
    }
    *out = queue.release();
    return BMRT_OK;
  });
}

void destroyQueue(bmrt_queue_t *queue) {
  const Driver &driver = queue->device.driver;
  Current current(queue->device);
  driver.cuStreamSynchronize(queue->stream);
  for (auto &[key, captured] : queue->graphs) {
    driver.cuGraphExecDestroy(captured.graph);
  }
  driver.cuStreamDestroy_v2(queue->stream);
  delete queue;
}

bmrt_code_t copy(bmrt_queue_t *queue, bmrt_copy_t direction, void *to, const void *from, uint64_t bytes,
                 bmrt_status_t *status) {
  const Driver &driver = queue->device.driver;
  Current current(queue->device);
  if (bytes == 0) {
    return BMRT_OK;
  }
  auto target = reinterpret_cast<CUdeviceptr>(to), source = reinterpret_cast<CUdeviceptr>(from);
  CUresult error = direction == BMRT_COPY_TO_CHIP ? driver.cuMemcpyHtoDAsync_v2(target, from, bytes, queue->stream)
                   : direction == BMRT_COPY_FROM_CHIP
                       ? driver.cuMemcpyDtoHAsync_v2(to, source, bytes, queue->stream)
                       : driver.cuMemcpyDtoDAsync_v2(target, source, bytes, queue->stream);
  return error ? failQueue(status, *queue, "a copy failed", error) : BMRT_OK;
}

uint64_t valueOf(const Argument &argument, const bmrt_stream_t &stream) {
  if (argument.kind == ArgumentKind::dim) {
    return uint64_t(stream.dims[argument.index]);
  }
  if (argument.kind != ArgumentKind::pointer) {
    return argument.value;
  }
  bool isWorkspace = argument.index == stream.input_count + stream.output_count;
  return reinterpret_cast<uint64_t>(isWorkspace ? stream.workspace : stream.tensors[argument.index]) + argument.value;
}

bool blocks() {
  const char *variable = getenv("BMRT_CUDA_BLOCKING");
  return variable && *variable && *variable != '0';
}

/// Gives the queue's stream all launches. |waits|: for each of them, so that a fault is known to be its.
bmrt_code_t launchAll(bmrt_queue_t &queue, const bmrt_program_t &program, const bmrt_stream_t &stream, bool waits,
                      bmrt_status_t *status) {
  const Driver &driver = queue.device.driver;
  std::vector<Command> commands;
  BMRT_RETURN_IF_ERROR(readCommands(stream, commands, status));
  for (const Command &command : commands) {
    const Launch &l = command.launch;
    std::vector<uint64_t> values;
    std::vector<void *> parameters;
    for (const Argument &argument : command.arguments) {
      values.push_back(valueOf(argument, stream));
    }
    for (uint64_t &value : values) {
      parameters.push_back(&value);
    }
    CUresult error =
        driver.cuLaunchKernel(program.functions[l.kernel], l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1],
                              l.block[2], l.sharedBytes, queue.stream, parameters.data(), nullptr);
    error = error || !waits ? error : driver.cuStreamSynchronize(queue.stream);
    if (error) {
      std::string what =
          std::string("layer ") + (l.layer < stream.layer_count ? stream.layers[l.layer] : "?") + " failed";
      return failDriver(status, queue.device, what.c_str(), error);
    }
  }
  return BMRT_OK;
}

/// Captures the launches of a stream into a graph.
bmrt_code_t capture(bmrt_queue_t &queue, const bmrt_program_t &program, const bmrt_stream_t &stream, CUgraphExec &out,
                    bmrt_status_t *status) {
  constexpr int kThreadLocal = 1; // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
  const Driver &driver = queue.device.driver;
  if (CUresult error = driver.cuStreamBeginCapture_v2(queue.stream, kThreadLocal)) {
    return failDriver(status, queue.device, "a graph cannot be captured", error);
  }
  bmrt_code_t launched = launchAll(queue, program, stream, /*waits=*/false, status);
  CUgraph graph = nullptr;
  CUresult error = driver.cuStreamEndCapture(queue.stream, &graph);
  if (launched == BMRT_OK && !error) {
    error = driver.cuGraphInstantiateWithFlags(&out, graph, 0);
  }
  if (graph) {
    driver.cuGraphDestroy(graph);
  }
  BMRT_RETURN_IF_ERROR(launched);
  return error ? failDriver(status, queue.device, "a graph cannot be captured", error) : BMRT_OK;
}

bmrt_code_t runStream(bmrt_queue_t &queue, const bmrt_program_t &program, const bmrt_stream_t &stream,
                      bmrt_status_t *status) {
  if (blocks()) {
    return launchAll(queue, program, stream, /*waits=*/true, status);
  }
  std::vector<uint64_t> bindings;
  for (uint32_t i = 0; i < stream.input_count + stream.output_count; ++i) {
    bindings.push_back(reinterpret_cast<uint64_t>(stream.tensors[i]));
  }
  bindings.push_back(reinterpret_cast<uint64_t>(stream.workspace));
  for (uint32_t i = 0; i < stream.dim_count; ++i) {
    bindings.push_back(uint64_t(stream.dims[i]));
  }
  auto known = queue.graphs.find({&program, stream.offset});
  if (known != queue.graphs.end() && known->second.bindings != bindings) {
    queue.device.driver.cuGraphExecDestroy(known->second.graph); // one that still runs is freed when it is done
    queue.graphs.erase(known);
    known = queue.graphs.end();
  }
  if (known == queue.graphs.end()) {
    CUgraphExec graph = nullptr;
    BMRT_RETURN_IF_ERROR(capture(queue, program, stream, graph, status));
    known = queue.graphs.try_emplace({&program, stream.offset}, Captured{std::move(bindings), graph}).first;
  }
  queue.last = stream.layer_count
                   ? std::string("of ") + stream.layers[0] + " .. " + stream.layers[stream.layer_count - 1]
                   : "without names";
  CUresult error = queue.device.driver.cuGraphLaunch(known->second.graph, queue.stream);
  return error ? failDriver(status, queue.device, "a graph cannot be launched", error) : BMRT_OK;
}

bmrt_code_t run(bmrt_queue_t *queue, bmrt_program_t *program, const bmrt_stream_t *stream, bmrt_status_t *status) {
  return guarded(status, [&] {
    Current current(queue->device);
    if (stream->interrupt && stream->interrupt->is_requested(stream->interrupt->user)) {
      return bmrt::core::failCancelled(status);
    }
    return runStream(*queue, *program, *stream, status);
  });
}

bmrt_code_t wait(bmrt_queue_t *queue, const bmrt_interrupt_t *, bmrt_status_t *status) {
  return guarded(status, [&] {
    Current current(queue->device);
    CUresult error = queue->device.driver.cuStreamSynchronize(queue->stream);
    return error ? failQueue(status, *queue, "a wait failed", error) : BMRT_OK;
  });
}

} // namespace

extern "C" BMRT_API const bmrt_backend_t bmrt_backend = {.abi = BMRT_BACKEND_ABI,
                                                         .flags = 0,
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
                                                         .wait = wait};
