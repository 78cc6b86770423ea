// SPDX-License-Identifier: Apache-2.0
//===- Program.cpp - Reader of compiled code and streams ------------------===//
#include "Program.h"

#include "../core/Status.h"
#include "Cursor.h"
#include "StreamSizes.h"

#include <cinttypes>
#include <cstring>

namespace bmrt::cuda {

using namespace bmodel::cuda;

namespace {

/// Limits that every GPU since compute capability 5.0 satisfies.
constexpr uint32_t kMostThreads = 1024, kMostGrid = 65535, kMostArguments = 512;
constexpr uint32_t kMostImages = 64, kMostKernels = 1 << 20;

const char *layerOf(const bmrt_stream_t &stream, const Launch &launch) {
  return launch.layer < stream.layer_count ? stream.layers[launch.layer] : "a layer without a name";
}

const char *faultOf(const Launch &launch) {
  uint64_t threads = uint64_t(launch.block[0]) * launch.block[1] * launch.block[2];
  if (launch.block[0] > kMostThreads || launch.block[1] > kMostThreads || threads == 0 || threads > kMostThreads) {
    return "a block has no thread, or more than 1024";
  }
  if (!launch.grid[0] || !launch.grid[1] || !launch.grid[2] || launch.grid[0] > kMostGridX ||
      launch.grid[1] > kMostGrid || launch.grid[2] > kMostGrid) {
    return "the grid is empty, or larger than a GPU supports";
  }
  return nullptr;
}

const char *faultOf(const Argument &argument, const bmrt_stream_t &stream, const StreamSizes &sizes) {
  uint32_t tensors = stream.input_count + stream.output_count;
  const bool isSized = argument.kind == ArgumentKind::sized;
  switch (argument.kind) {
  case ArgumentKind::pointer:
  case ArgumentKind::sized: {
    if (argument.index > tensors) {
      return "an argument is a tensor that the step does not list";
    }
    if (isSized && argument.reach >= sizes.count()) {
      return "an argument reaches as far as a size that the stream does not list";
    }
    uint64_t bytes = argument.index == tensors ? stream.workspace_bytes : stream.tensor_bytes[argument.index];
    uint64_t reach = isSized ? 0 : argument.reach; // the sizes of a run are not known yet
    return argument.value > bytes || reach > bytes - argument.value ? "an argument reaches past its tensor" : nullptr;
  }
  case ArgumentKind::size:
    return argument.index < sizes.count() ? nullptr : "an argument is a size that the stream does not list";
  case ArgumentKind::dim:
    return argument.index < stream.dim_count ? nullptr : "an argument is a dim that the step does not list";
  case ArgumentKind::value32:
  case ArgumentKind::value64:
    return nullptr;
  }
  return "an argument has an unknown kind";
}

} // namespace

bmrt_code_t readTables(const unsigned char *code, uint64_t bytes, Tables &out, bmrt_status_t *status) {
  Cursor cursor(code, bytes);
  Directory head;
  if (!cursor.read(head) || head.magic != kMagic || head.version < kVersion || head.version > kVersionSizes) {
    return BMRT_FAIL(status, CORRUPT,
                     "a segment of %" PRIu64 " bytes is not code of family cuda, versions %" PRIu32 " to %" PRIu32,
                     bytes, kVersion, kVersionSizes);
  }
  out.version = head.version;
  if (head.imageCount == 0 || head.imageCount > kMostImages || head.kernelCount > kMostKernels) {
    return BMRT_FAIL(status, CORRUPT, "code of family cuda has %" PRIu32 " images and %" PRIu32 " kernels",
                     head.imageCount, head.kernelCount);
  }
  for (uint32_t i = 0; i < head.imageCount; ++i) {
    Image image;
    bool isGood = cursor.read(image) && image.offset < bytes && image.bytes > 0 && image.bytes <= bytes - image.offset;
    if (!isGood || (!image.isMachineCode && code[image.offset + image.bytes - 1] != 0)) {
      return BMRT_FAIL(status, CORRUPT, "image %" PRIu32 " of code of family cuda is truncated", i);
    }
    out.images.push_back(image);
  }
  for (uint32_t i = 0; i < head.kernelCount; ++i) {
    Kernel kernel;
    if (!cursor.read(kernel) || kernel.nameOffset >= bytes || kernel.argumentCount > kMostArguments ||
        !memchr(code + kernel.nameOffset, 0, bytes - kernel.nameOffset)) {
      return BMRT_FAIL(status, CORRUPT, "kernel %" PRIu32 " of code of family cuda is truncated", i);
    }
    out.kernels.push_back(kernel);
  }
  return BMRT_OK;
}

namespace {

/// Reads the launches of an untrusted stream as they are in the file; fails if the last one is truncated.
bmrt_code_t parse(const Tables &tables, const bmrt_stream_t &stream, StreamSizes &sizes, std::vector<Command> &out,
                  bmrt_status_t *status) {
  Cursor cursor(stream.code + stream.offset, stream.bytes);
  const bool hasSizes = tables.version >= kVersionSizes;
  if (hasSizes) {
    BMRT_RETURN_IF_ERROR(sizes.read(cursor, stream, status));
  }
  while (!cursor.isAtEnd()) {
    Command &command = out.emplace_back();
    bool isWhole = cursor.read(command.launch) && command.launch.argumentCount <= kMostArguments &&
                   (!hasSizes || cursor.read(command.grid));
    for (uint32_t i = 0; isWhole && i < command.launch.argumentCount; ++i) {
      isWhole = cursor.read(command.arguments.emplace_back());
    }
    if (!isWhole) {
      return BMRT_FAIL(status, CORRUPT, "launch %zu of a stream of %" PRIu64 " bytes is truncated", out.size() - 1,
                       stream.bytes);
    }
  }
  return BMRT_OK;
}

const char *faultOf(const Tables &tables, const bmrt_stream_t &stream, const StreamSizes &sizes,
                    const Command &command) {
  const Launch &launch = command.launch;
  if (launch.kernel >= tables.kernels.size()) {
    return "the kernel is not in the code";
  }
  if (launch.argumentCount != tables.kernels[launch.kernel].argumentCount) {
    return "the kernel takes a different number of arguments";
  }
  if (command.grid.tiles != kConstantGrid && (command.grid.tiles >= sizes.count() || !command.grid.tilesPerBlock)) {
    return "the grid has a size that the stream does not list";
  }
  const char *fault = faultOf(launch);
  for (size_t i = 0; !fault && i < command.arguments.size(); ++i) {
    fault = faultOf(command.arguments[i], stream, sizes);
  }
  return fault;
}

bmrt_code_t check(const Tables &tables, const bmrt_stream_t &stream, const StreamSizes &sizes,
                  const std::vector<Command> &commands, bmrt_status_t *status) {
  for (size_t i = 0; i < commands.size(); ++i) {
    if (const char *fault = faultOf(tables, stream, sizes, commands[i])) {
      return BMRT_FAIL(status, CORRUPT, "launch %zu of %.80s: %s", i, layerOf(stream, commands[i].launch), fault);
    }
  }
  return BMRT_OK;
}

} // namespace

bmrt_code_t verifyStream(const Tables &tables, const bmrt_stream_t &stream, std::vector<Command> &out,
                         bmrt_status_t *status) {
  StreamSizes sizes;
  BMRT_RETURN_IF_ERROR(parse(tables, stream, sizes, out, status));
  return check(tables, stream, sizes, out, status);
}

bmrt_code_t readCommands(const Tables &tables, const bmrt_stream_t &stream, std::vector<Command> &out,
                         bmrt_status_t *status) {
  StreamSizes sizes;
  BMRT_RETURN_IF_ERROR(parse(tables, stream, sizes, out, status));
  if (tables.version < kVersionSizes) {
    return BMRT_OK;
  }
  BMRT_RETURN_IF_ERROR(sizes.apply(stream, out, status));
  return check(tables, stream, sizes, out, status); // now with the reach of every pointer
}

} // namespace bmrt::cuda
