// SPDX-License-Identifier: Apache-2.0
//===- Vector.cpp - Commands of the vector unit -----------------------------===//
#include "Arithmetic.h"
#include "Execute.h"

#include "bmodel/numerics_float.h"

#include <algorithm>
#include <cstring>

namespace bmrt::npu {
namespace {

using namespace bmodel::npu;
namespace numerics = bmodel::numerics;

template <typename Visit>
void eachChunk(const Shape &shape, Visit visit) {
  for (uint32_t n = 0; n < shape.dims[0]; ++n) {
    for (uint32_t c = 0; c < shape.dims[1]; ++c) {
      for (uint32_t h = 0; h < shape.dims[2]; ++h) {
        for (uint32_t w = 0; w < shape.dims[3]; w += kChunk) {
          visit(n, c, h, w, std::min(kChunk, shape.dims[3] - w));
        }
      }
    }
  }
}

float larger(float a, float b) { return a != a ? a : b != b ? b : a > b || (a == b && !std::signbit(a)) ? a : b; }

/// Computes a product from partial products, which are combined like the partial sums of OrderedSum.
float productOf(const float *row, uint32_t count) {
  constexpr uint32_t kPartial = numerics::OrderedSum::kPartial;
  float products[kPartial];
  std::fill(std::begin(products), std::end(products), 1.0f);
  for (uint32_t i = 0; i < count; ++i) {
    products[i % kPartial] *= row[i];
  }
  for (uint32_t half = kPartial / 2; half > 0; half /= 2) {
    for (uint32_t i = 0; i < half; ++i) {
      products[i] *= products[i + half];
    }
  }
  return products[0];
}

float reduceRow(const float *row, uint32_t count, uint8_t kind) {
  if (kind == 0 || kind == 4) {
    numerics::OrderedSum sum;
    for (uint32_t i = 0; i < count; ++i) {
      kind == 0 ? sum.add({row[i]}) : sum.addProduct({row[i]}, {row[i]});
    }
    return sum.total().v;
  }
  if (kind == 3) {
    return productOf(row, count);
  }
  float result = row[0];
  for (uint32_t i = 1; i < count; ++i) {
    result = kind == 1 ? larger(result, row[i]) : -larger(-result, -row[i]);
  }
  return result;
}

} // namespace

const char *execute(const map_command &command, Machine &machine) {
  const Memories &memories = machine.memories;
  Tensor operands[4] = {command.a, command.b, command.c, command.d}, result = command.y;
  Shape shape = command.shape;
  joinRows(shape, {&operands[0], &operands[1], &operands[2], &operands[3], &result});
  Rows y = memories.rows(result), x[4];
  for (int i = 0; i < 4; ++i) {
    x[i] = memories.rows(operands[i]);
  }
  Instruction program[kMostInstructions];
  memcpy(program, memories.rows(command.program).at(0, 0, 0), sizeof(Instruction) * command.length);
  alignas(64) float registers[kRegisters][kChunk] = {};
  eachChunk(shape, [&](uint32_t n, uint32_t c, uint32_t h, uint32_t w, uint32_t count) {
    for (int i = 0; i < 4; ++i) {
      if (x[i]) {
        x[i].load(registers[i], n, c, h, w, count);
      }
    }
    for (uint32_t i = 0; i < command.length; ++i) {
      const Instruction &each = program[i];
      apply(each, registers[each.y], registers[each.a], registers[each.b], registers[each.extra % kRegisters], count);
    }
    y.store(registers[program[command.length - 1].y], n, c, h, w, count);
  });
  return nullptr;
}

const char *execute(const reduce_command &command, Machine &machine) {
  Rows y = machine.memories.rows(command.y), x = machine.memories.rows(command.x);
  core::Array<float> row;
  if (!row.allocate(command.shape.dims[3])) {
    return "memory has run out";
  }
  for (uint32_t n = 0; n < command.shape.dims[0]; ++n) {
    for (uint32_t c = 0; c < command.shape.dims[1]; ++c) {
      for (uint32_t h = 0; h < command.shape.dims[2]; ++h) {
        x.load(row.data(), n, c, h, 0, command.shape.dims[3]);
        float result = reduceRow(row.data(), command.shape.dims[3], command.kind);
        y.store(&result, n, c, h, 0, 1);
      }
    }
  }
  return nullptr;
}

const char *execute(const lut_command &command, Machine &machine) {
  Tensor to = command.y, from = command.x;
  Shape shape = command.shape;
  joinRows(shape, {&to, &from});
  Rows y = machine.memories.rows(to), x = machine.memories.rows(from), table = machine.memories.rows(command.table);
  size_t size = sizeOf(command.y.type);
  for (uint32_t n = 0; n < shape.dims[0]; ++n) {
    for (uint32_t c = 0; c < shape.dims[1]; ++c) {
      const unsigned char *values = table.at(0, c, 0);
      for (uint32_t h = 0; h < shape.dims[2]; ++h) {
        unsigned char *out = y.at(n, c, h), *in = x.at(n, c, h);
        for (uint32_t w = 0; w < shape.dims[3]; ++w) {
          memcpy(out + w * y.step(), values + int64_t(in[w * x.step()]) * table.step(), size);
        }
      }
    }
  }
  return nullptr;
}

const char *execute(const dot_command &command, Machine &machine) {
  Memories &memories = machine.memories;
  Rows y = memories.rows(command.y), a = memories.rows(command.a), b = memories.rows(command.b),
       s = memories.rows(command.s);
  const uint32_t *dims = command.shape.dims;
  uint32_t width = dims[3], steps = command.steps;
  auto *sums = machine.scratch.take<float>(0, width), *row = machine.scratch.take<float>(1, width),
       *factors = machine.scratch.take<float>(2, steps);
  if (!sums || !row || !factors) {
    return kNoMemory;
  }
  std::fill(factors, factors + steps, 1.0f);
  for (uint32_t n = 0; n < dims[0]; ++n) {
    for (uint32_t c = 0; c < dims[1]; ++c) {
      for (uint32_t h = 0; h < dims[2]; ++h) {
        if (a) {
          a.load(factors, n, c, h, 0, steps);
        }
        std::fill(sums, sums + width, 0.0f);
        if (s) {
          s.load(sums, n, c, h, 0, width);
        }
        for (uint32_t k = 0; k < steps; ++k) {
          b.load(row, n, c, k, 0, width);
          addScaledRow(sums, row, factors[k], width);
        }
        y.store(sums, n, c, h, 0, width);
      }
    }
  }
  return nullptr;
}

const char *execute(const pick_command &command, Machine &machine) {
  Rows y = machine.memories.rows(command.y), x = machine.memories.rows(command.x),
       index = machine.memories.rows(command.index);
  const uint32_t *dims = command.shape.dims;
  size_t size = sizeOf(command.y.type), indexSize = sizeOf(command.index.type);
  auto *from = machine.scratch.take<uint32_t>(0, dims[3]);
  if (!from) {
    return kNoMemory;
  }
  for (uint32_t c = 0; c < dims[1]; ++c) {
    for (uint32_t w = 0; w < dims[3]; ++w) {
      int32_t wide;
      int16_t narrow;
      const unsigned char *at = index.at(0, c, 0) + int64_t(w) * index.step();
      indexSize == 2 ? memcpy(&narrow, at, 2) : memcpy(&wide, at, 4);
      from[w] = uint32_t(indexSize == 2 ? narrow : wide);
      if (from[w] >= command.columns) {
        return "an index is outside the columns";
      }
    }
    for (uint32_t n = 0; n < dims[0]; ++n) {
      for (uint32_t h = 0; h < dims[2]; ++h) {
        unsigned char *out = y.at(n, c, h), *in = x.at(n, c, h);
        for (uint32_t w = 0; w < dims[3]; ++w) {
          memcpy(out + int64_t(w) * y.step(), in + int64_t(from[w]) * x.step(), size);
        }
      }
    }
  }
  return nullptr;
}

} // namespace bmrt::npu
