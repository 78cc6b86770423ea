// SPDX-License-Identifier: Apache-2.0
//===- AbacusBackend.cpp - Back end of the Abacus, the smallest family ----===//
//
// A complete back end (bmrt/backend.h) of a chip with its own memory, which only the back end can access: any other
// access ends the process.
//
//===----------------------------------------------------------------------===//
#include "Memory.h"
#include "Program.h"
#include "bmrt/backend.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>
#include <vector>

using namespace bmrt::abacus;
using bmodel::abacus::Command;
using bmodel::abacus::kVersion;

struct bmrt_device_t {
  ChipMemory memory;
};

namespace {

[[gnu::format(printf, 3, 4)]] bmrt_code_t fail(bmrt_status_t *status, bmrt_code_t code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(status->message, sizeof(status->message), format, args);
  va_end(args);
  status->file = __FILE_NAME__, status->line = __LINE__, status->code = code;
  return code;
}

bmrt_code_t open(const bmrt_chip_t *chip, bmrt_device_t **out, bmrt_status_t *status) {
  *out = new (std::nothrow) bmrt_device_t;
  return *out ? BMRT_OK : fail(status, BMRT_NO_MEMORY, "no memory for chip '%.60s'", chip->name);
}

void close(bmrt_device_t *device) { delete device; }

bmrt_code_t allocate(bmrt_device_t *device, uint64_t bytes, void **out, bmrt_status_t *status) {
  *out = device->memory.allocate(bytes);
  return *out ? BMRT_OK : fail(status, BMRT_NO_MEMORY, "an Abacus has no memory for %ju bytes", uintmax_t(bytes));
}

void release(bmrt_device_t *device, void *address) { device->memory.release(static_cast<char *>(address)); }

bmrt_code_t check(bmrt_device_t *, const bmrt_subnet_t *subnet, bmrt_status_t *status) {
  return subnet->code_version == kVersion
             ? BMRT_OK
             : fail(status, BMRT_UNSUPPORTED,
                    "subnet '%.60s' has commands of version %u, an Abacus supports version %u", subnet->name,
                    subnet->code_version, kVersion);
}

/// Programs are read directly from the file.
bmrt_code_t load(bmrt_device_t *device, const unsigned char *, uint64_t, bmrt_program_t **out, bmrt_status_t *) {
  *out = reinterpret_cast<bmrt_program_t *>(device);
  return BMRT_OK;
}

void unload(bmrt_program_t *) {}

std::vector<Command> commandsOf(const bmrt_stream_t &from) {
  std::vector<Command> commands(from.bytes / sizeof(Command));
  // Unlike memcpy(), std::copy_n accepts the null data() of an empty list.
  std::copy_n(from.code + from.offset, commands.size() * sizeof(Command), reinterpret_cast<char *>(commands.data()));
  return commands;
}

bmrt_code_t verify(bmrt_program_t *, const bmrt_stream_t *stream, bmrt_status_t *status) {
  const uint32_t tensors = stream->input_count + stream->output_count;
  std::vector<uint64_t> bytes(stream->tensor_bytes, stream->tensor_bytes + tensors);
  bytes.push_back(stream->workspace_bytes);
  const std::vector<Command> commands = commandsOf(*stream);
  if (stream->bytes != commands.size() * sizeof(Command)) {
    return fail(status, BMRT_CORRUPT, "a program of %ju bytes is not a list of commands", uintmax_t(stream->bytes));
  }
  for (size_t i = 0; i < commands.size(); ++i) {
    if (const char *fault = faultOf(commands[i], bytes.data(), stream->input_count, tensors + 1)) {
      return fail(status, BMRT_CORRUPT, "command %zu%s%.60s: %s", i, stream->layer_count ? " of " : "",
                  stream->layer_count ? stream->layers[0] : "", fault);
    }
  }
  return BMRT_OK;
}

/// Commands are complete when their functions return, so a queue is just its chip.
bmrt_code_t makeQueue(bmrt_device_t *device, bmrt_queue_t **out, bmrt_status_t *) {
  *out = reinterpret_cast<bmrt_queue_t *>(device);
  return BMRT_OK;
}

void destroyQueue(bmrt_queue_t *) {}

ChipMemory &memoryOf(bmrt_queue_t *queue) { return reinterpret_cast<bmrt_device_t *>(queue)->memory; }

bmrt_code_t copy(bmrt_queue_t *queue, bmrt_copy_t direction, void *to, const void *from, uint64_t bytes,
                 bmrt_status_t *status) {
  const void *source = direction == BMRT_COPY_TO_CHIP ? from : memoryOf(queue).contentsOf(from, bytes);
  void *target = direction == BMRT_COPY_FROM_CHIP ? to : memoryOf(queue).contentsOf(to, bytes);
  if (!source || !target) {
    return fail(status, BMRT_INVALID_ARGUMENT, "a copy reaches outside the memory of an Abacus");
  }
  memmove(target, source, bytes);
  return BMRT_OK;
}

bmrt_code_t run(bmrt_queue_t *queue, bmrt_program_t *, const bmrt_stream_t *stream, bmrt_status_t *status) {
  std::vector<char *> tensors(stream->input_count + stream->output_count);
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    tensors[i] = memoryOf(queue).contentsOf(stream->tensors[i], stream->tensor_bytes[i]);
    if (!tensors[i]) {
      return fail(status, BMRT_INVALID_ARGUMENT, "tensor %u is not in the memory of an Abacus", i);
    }
  }
  tensors.push_back(memoryOf(queue).contentsOf(stream->workspace, stream->workspace_bytes));
  for (const Command &command : commandsOf(*stream)) {
    if (stream->interrupt->is_requested(stream->interrupt->user)) {
      return fail(status, BMRT_CANCELLED, "the run was cancelled");
    }
    bmrt::abacus::run(command, tensors.data());
  }
  return BMRT_OK;
}

} // namespace

extern "C" BMRT_API const bmrt_backend_t bmrt_backend = {.abi = BMRT_BACKEND_ABI,
                                                         .flags = 0,
                                                         .struct_size = sizeof(bmrt_backend_t),
                                                         .family = "abacus",
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
                                                         .wait = nullptr,
                                                         .use_stream = nullptr,
                                                         .run_timed = nullptr,
                                                         .is_done = nullptr};
