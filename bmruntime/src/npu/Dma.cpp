// SPDX-License-Identifier: Apache-2.0
//===- Dma.cpp - Commands of the DMA queue ----------------------------------===//
#include "Execute.h"

#include <cstring>

namespace bmrt::npu {
namespace {

using namespace bmodel::npu;

template <size_t kSize>
void copyElements(unsigned char *to, int64_t toStep, const unsigned char *from, int64_t fromStep, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    memcpy(to + i * toStep, from + i * fromStep, kSize);
  }
}

/// Copies a row of elements between tensors of one type.
void copyRow(unsigned char *to, int64_t toStep, const unsigned char *from, int64_t fromStep, uint32_t count,
             size_t size) {
  if (toStep == int64_t(size) && fromStep == int64_t(size)) {
    memmove(to, from, size * count);
    return;
  }
  auto *copy = size == 1 ? copyElements<1> : size == 2 ? copyElements<2> : copyElements<4>;
  copy(to, toStep, from, fromStep, count);
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
  Tensor to = command.y, from = command.x;
  Shape shape = command.shape;
  joinRows(shape, {&to, &from});
  Rows y = machine.memories.rows(to), x = machine.memories.rows(from);
  uint32_t width = shape.dims[3];
  if (to.type == from.type) {
    size_t size = sizeOf(to.type);
    eachRow(shape, [&](uint32_t n, uint32_t c, uint32_t h) {
      copyRow(y.at(n, c, h), y.step(), x.at(n, c, h), x.step(), width, size);
    });
    return nullptr;
  }
  float part[256];
  eachRow(shape, [&](uint32_t n, uint32_t c, uint32_t h) {
    for (uint32_t w = 0; w < width; w += std::size(part)) {
      uint32_t count = std::min<uint32_t>(width - w, std::size(part));
      x.load(part, n, c, h, w, count);
      y.store(part, n, c, h, w, count);
    }
  });
  return nullptr;
}

const char *execute(const fill_command &command, Machine &machine) {
  Tensor to = command.y;
  Shape shape = command.shape;
  joinRows(shape, {&to});
  Rows y = machine.memories.rows(to);
  size_t size = sizeOf(to.type);
  auto *value = reinterpret_cast<const unsigned char *>(&command.value);
  eachRow(shape, [&](uint32_t n, uint32_t c, uint32_t h) {
    if (size == 1 && y.step() == 1) {
      memset(y.at(n, c, h), *value, shape.dims[3]);
    } else {
      copyRow(y.at(n, c, h), y.step(), value, 0, shape.dims[3], size);
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
