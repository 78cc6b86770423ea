// SPDX-License-Identifier: Apache-2.0
//===- Dma.cpp - Commands of the DMA queue ----------------------------------===//
#include "Execute.h"

#include <cstring>

namespace bmrt::npu {
namespace {

using namespace bmodel::npu;

/// Rows of copied elements between tensors of one type.
void copyRow(unsigned char *to, int64_t toStep, const unsigned char *from, int64_t fromStep, uint32_t count,
             size_t size) {
  if (toStep == int64_t(size) && fromStep == int64_t(size)) {
    memmove(to, from, size * count);
    return;
  }
  for (uint32_t i = 0; i < count; ++i) {
    memcpy(to + i * toStep, from + i * fromStep, size);
  }
}

/// Calls visit(n, c, h) for every row.
template <typename Visit>
void eachRow(const Shape &shape, Visit visit) {
  for (uint32_t n = 0; n < shape.dims[0]; ++n) {
    for (uint32_t c = 0; c < shape.dims[1]; ++c) {
      for (uint32_t h = 0; h < shape.dims[2]; ++h) {
        visit(n, c, h);
      }
    }
  }
}

} // namespace

const char *execute(const copy_command &command, Machine &machine) {
  Rows y = machine.memories.rows(command.y), x = machine.memories.rows(command.x);
  uint32_t width = command.shape.dims[3];
  if (command.x.type == command.y.type) {
    size_t size = sizeOf(command.x.type);
    eachRow(command.shape, [&](uint32_t n, uint32_t c, uint32_t h) {
      copyRow(y.at(n, c, h), y.step(), x.at(n, c, h), x.step(), width, size);
    });
    return nullptr;
  }
  float part[256];
  eachRow(command.shape, [&](uint32_t n, uint32_t c, uint32_t h) {
    for (uint32_t w = 0; w < width; w += std::size(part)) {
      uint32_t count = std::min<uint32_t>(width - w, std::size(part));
      x.load(part, n, c, h, w, count);
      y.store(part, n, c, h, w, count);
    }
  });
  return nullptr;
}

const char *execute(const fill_command &command, Machine &machine) {
  Rows y = machine.memories.rows(command.y);
  size_t size = sizeOf(command.y.type);
  eachRow(command.shape, [&](uint32_t n, uint32_t c, uint32_t h) {
    unsigned char *to = y.at(n, c, h);
    for (uint32_t w = 0; w < command.shape.dims[3]; ++w) {
      memcpy(to + w * y.step(), &command.value, size);
    }
  });
  return nullptr;
}

const char *execute(const gather_command &command, Machine &machine) {
  Rows y = machine.memories.rows(command.y), x = machine.memories.rows(command.x),
       index = machine.memories.rows(command.index);
  for (uint32_t c = 0; c < command.shape.dims[1]; ++c) {
    int32_t row;
    memcpy(&row, index.at(0, c, 0), sizeof row);
    if (row < 0 || uint32_t(row) >= command.rows) {
      return "an index is outside the table";
    }
    for (uint32_t n = 0; n < command.shape.dims[0]; ++n) {
      copyRow(y.at(n, c, 0), y.step(), x.at(n, uint32_t(row), 0), x.step(), command.shape.dims[3],
              sizeOf(command.y.type));
    }
  }
  return nullptr;
}

} // namespace bmrt::npu
