// SPDX-License-Identifier: Apache-2.0
//===- NpuBackend.cpp - Runs command streams on the NPU simulator -----------===//
#include "NpuBackend.h"

#include "../core/Status.h"
#include "Simulator.h"
#include "bmodel/npu/check.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

using namespace bmrt;
using namespace bmodel::npu;

namespace {

// Programs are read directly from the file, so a program handle is just its chip.

const Chip &chipOf(bmrt_device_t *device) { return *reinterpret_cast<const Chip *>(device); }
const Chip &chipOf(bmrt_program_t *program) { return *reinterpret_cast<const Chip *>(program); }

bmrt_code_t open(const bmrt_chip_t *def, bmrt_device_t **out, bmrt_status_t *status) {
  Chip *chip = core::createObject<Chip>();
  if (!chip) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for a chip");
  }
  std::string error;
  if (!parseChip(def->description, "chip", *chip, error)) {
    core::destroyObject(chip);
    return BMRT_FAIL(status, CORRUPT, "the description of chip '%.60s' is invalid: %.300s", def->name, error.c_str());
  }
  if (const std::string result = fingerprint(*chip); result != def->fingerprint) {
    core::destroyObject(chip);
    return BMRT_FAIL(status, CORRUPT, "chip '%.60s' has the fingerprint %s, its program is for %.40s", def->name,
                     result.c_str(), def->fingerprint);
  }
  *out = reinterpret_cast<bmrt_device_t *>(chip);
  return BMRT_OK;
}

void close(bmrt_device_t *device) { core::destroyObject(reinterpret_cast<Chip *>(device)); }

bmrt_code_t check(bmrt_device_t *, const bmrt_subnet_t *subnet, bmrt_status_t *status) {
  return subnet->code_version == kIsaVersion
             ? BMRT_OK
             : BMRT_FAIL(status, UNSUPPORTED,
                         "subnet '%.60s' has commands of version %" PRIu32 "; this runtime runs version %" PRIu32
                         ": deploy the model anew",
                         subnet->name, subnet->code_version, kIsaVersion);
}

bmrt_code_t load(bmrt_device_t *device, const unsigned char *, uint64_t, bmrt_program_t **out, bmrt_status_t *) {
  *out = reinterpret_cast<bmrt_program_t *>(device);
  return BMRT_OK;
}

void unload(bmrt_program_t *) {}

const Descriptor *commandsOf(const bmrt_stream_t &stream) {
  return reinterpret_cast<const Descriptor *>(stream.code + stream.offset);
}

/// Reports a fault in a stream, and adds the layers of the model that its commands belong to.
bmrt_code_t failIn(const bmrt_stream_t &stream, const bmodel::Status &cause, bmrt_code_t code, bmrt_status_t *status) {
  const Descriptor *commands = commandsOf(stream);
  char text[200] = "";
  for (int64_t command : cause.commands) {
    uint32_t layer = command < 0 ? 0 : commands[command].header.layer;
    if (command >= 0 && layer < stream.layer_count) {
      size_t length = strlen(text);
      snprintf(text + length, sizeof text - length, "; command %" PRId64 " is of '%.60s'", command,
               stream.layers[layer]);
    }
  }
  return core::fail(status, code, cause.file, cause.line, "%.300s%s", cause.message, text);
}

/// Checks the commands of a step; the status names the faulty command.
bmrt_code_t verify(bmrt_program_t *program, const bmrt_stream_t *stream, bmrt_status_t *status) {
  if (stream->offset % kDescriptorBytes || stream->bytes % kDescriptorBytes) {
    return BMRT_FAIL(status, CORRUPT, "a stream of %" PRIu64 " bytes at %" PRIu64 " is not a list of commands",
                     stream->bytes, stream->offset);
  }
  RegionSizes sizes{.constants = stream->constant_bytes,
                    .workspace = stream->workspace_bytes,
                    .io = {},
                    .inputs = stream->input_count};
  sizes.io.assign(stream->tensor_bytes, stream->tensor_bytes + stream->input_count + stream->output_count);
  bmodel::Status cause;
  bool good = checkStream(commandsOf(*stream), stream->bytes / kDescriptorBytes, chipOf(program), sizes,
                          stream->constants, cause);
  return good ? BMRT_OK : failIn(*stream, cause, BMRT_CORRUPT, status);
}

/// A simulated chip for one context, whose local memory persists between runs. Executes commands immediately.
struct Worker {
  explicit Worker(const Chip &chip) : simulator(chip) {}

  npu::Simulator simulator;
  core::Array<npu::Area> tensors; ///< tensors of the current stream; grows as needed
};

Worker *workerOf(bmrt_queue_t *queue) { return reinterpret_cast<Worker *>(queue); }

bmrt_code_t makeQueue(bmrt_device_t *device, bmrt_queue_t **out, bmrt_status_t *status) {
  const Chip &chip = chipOf(device);
  Worker *worker = core::createObject<Worker>(chip);
  if (!worker || !worker->simulator.allocate()) {
    core::destroyObject(worker);
    return BMRT_FAIL(status, NO_MEMORY, "no memory for the %" PRIu64 " bytes of the chip's local memory",
                     chip.localBytes());
  }
  *out = reinterpret_cast<bmrt_queue_t *>(worker);
  return BMRT_OK;
}

void destroyQueue(bmrt_queue_t *queue) { core::destroyObject(workerOf(queue)); }

bmrt_code_t run(bmrt_queue_t *queue, bmrt_program_t *, const bmrt_stream_t *stream, bmrt_status_t *status) {
  Worker &worker = *workerOf(queue);
  const uint32_t count = stream->input_count + stream->output_count;
  if (worker.tensors.size() < count && !worker.tensors.allocate(count)) {
    return BMRT_FAIL(status, NO_MEMORY, "no memory for %" PRIu32 " buffers", count);
  }
  for (uint32_t i = 0; i < count; ++i) {
    worker.tensors[i] = {static_cast<unsigned char *>(stream->tensors[i]), stream->tensor_bytes[i]};
  }
  npu::Buffers buffers{{const_cast<unsigned char *>(stream->constants), stream->constant_bytes},
                       {static_cast<unsigned char *>(stream->workspace), stream->workspace_bytes},
                       worker.tensors.data(),
                       count};
  bmodel::Status cause;
  if (worker.simulator.run(commandsOf(*stream), stream->bytes / kDescriptorBytes, buffers, cause, nullptr,
                           stream->interrupt)) {
    return BMRT_OK;
  }
  return cause.ok() ? core::failCancelled(status) : failIn(*stream, cause, BMRT_INVALID_ARGUMENT, status);
}

} // namespace

const bmrt_backend_t npu::backend = {.abi = BMRT_BACKEND_ABI,
                                     .flags = BMRT_BACKEND_HOST_MEMORY,
                                     .struct_size = sizeof(bmrt_backend_t),
                                     .family = "npu",
                                     .open = open,
                                     .close = close,
                                     .allocate = nullptr,
                                     .release = nullptr,
                                     .check = check,
                                     .load = load,
                                     .unload = unload,
                                     .find_kernel = nullptr,
                                     .find_contract = nullptr,
                                     .verify = verify,
                                     .make_queue = makeQueue,
                                     .destroy_queue = destroyQueue,
                                     .copy = nullptr,
                                     .run = run,
                                     .launch = nullptr,
                                     .wait = nullptr,
                                     .use_stream = nullptr,
                                     .run_timed = nullptr,
                                     .is_done = nullptr};
