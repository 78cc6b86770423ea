// SPDX-License-Identifier: Apache-2.0
//===- StreamSizes.cpp - Sizes of a stream that are known at run time -----===//
#include "StreamSizes.h"

#include "../core/Status.h"

#include <cinttypes>

using namespace bmodel::cuda;

namespace bmrt::cuda {

bmrt_code_t StreamSizes::read(Cursor &cursor, const bmrt_stream_t &stream, bmrt_status_t *status) {
  SizeTable table;
  if (!cursor.read(table) || table.paramCount != stream.dim_count) {
    return BMRT_FAIL(status, CORRUPT, "a stream of %" PRIu64 " bytes does not take the %" PRIu32 " dims of its step",
                     stream.bytes, stream.dim_count);
  }
  bool isWhole = true;
  for (uint32_t i = 0; isWhole && i < table.paramCount; ++i) {
    isWhole = cursor.read(params.emplace_back());
  }
  std::vector<uint32_t> lengths;
  for (uint32_t i = 0; isWhole && i < table.sizeCount; ++i) {
    isWhole = cursor.read(lengths.emplace_back());
  }
  for (uint32_t i = 0; isWhole && i < table.sizeCount; ++i) {
    sizes.emplace_back(cursor.position(), lengths[i]);
    isWhole = cursor.skip(uint64_t(lengths[i]) * sizeof(bm_dim_term));
    if (const char *fault = isWhole ? findFault(sizes.back(), table.paramCount) : nullptr) {
      return BMRT_FAIL(status, CORRUPT, "size %" PRIu32 " of a stream %s", i, fault);
    }
  }
  return isWhole ? BMRT_OK
                 : BMRT_FAIL(status, CORRUPT, "the sizes of a stream of %" PRIu64 " bytes are truncated", stream.bytes);
}

bmrt_code_t StreamSizes::evaluateAll(const bmrt_stream_t &stream, std::vector<uint64_t> &values,
                                     bmrt_status_t *status) const {
  for (size_t i = 0; i < params.size(); ++i) {
    if (stream.dims[i] < params[i].min || stream.dims[i] > params[i].max) {
      return BMRT_FAIL(status, CORRUPT,
                       "dim %zu of a stream is %" PRId64 ", its kernels were compiled for %" PRId64 " to %" PRId64, i,
                       stream.dims[i], params[i].min, params[i].max);
    }
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t value = -1;
    if (!evaluate(sizes[i], stream.dims, value) || value < 0) {
      return BMRT_FAIL(status, CORRUPT, "size %zu of a stream is not a number of 0 or more", i);
    }
    values.push_back(uint64_t(value));
  }
  return BMRT_OK;
}

bmrt_code_t StreamSizes::apply(const bmrt_stream_t &stream, std::vector<Command> &commands,
                               bmrt_status_t *status) const {
  std::vector<uint64_t> values;
  BMRT_RETURN_IF_ERROR(evaluateAll(stream, values, status));
  std::vector<Command> launched;
  for (Command &command : commands) {
    if (command.grid.tiles != kConstantGrid) {
      const uint64_t tiles = values[command.grid.tiles], each = command.grid.tilesPerBlock;
      const uint64_t blocks = tiles / each + (tiles % each != 0);
      if (blocks > kMostGridX) {
        return BMRT_FAIL(status, UNSUPPORTED,
                         "a kernel takes %" PRIu64 " blocks of threads at these sizes, a GPU supports %" PRIu32
                         ": give smaller inputs",
                         blocks, kMostGridX);
      }
      if (blocks == 0) {
        continue;
      }
      command.launch.grid[0] = uint32_t(blocks);
    }
    for (Argument &argument : command.arguments) {
      if (argument.kind == ArgumentKind::sized) {
        argument.kind = ArgumentKind::pointer, argument.reach = values[argument.reach];
      } else if (argument.kind == ArgumentKind::size) {
        argument = {ArgumentKind::value64, 0, values[argument.index], 0};
      }
    }
    launched.push_back(std::move(command));
  }
  commands = std::move(launched);
  return BMRT_OK;
}

} // namespace bmrt::cuda
