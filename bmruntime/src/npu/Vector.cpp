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

/// h and w as one, where all tensors let them: rows get long. Lanes keep channels apart.
void joinRows(Shape &shape, std::initializer_list<Tensor *> tensors) {
  for (const Tensor *each : tensors) {
    if (each->region != Region::none && each->strides[2] != int64_t(each->strides[3]) * shape.dims[3]) {
      return;
    }
  }
  shape.dims[3] *= shape.dims[2];
  shape.dims[2] = 1;
}

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

float reduceRow(const float *row, uint32_t count, uint8_t kind) {
  if (kind == 0) {
    numerics::OrderedSum sum;
    for (uint32_t i = 0; i < count; ++i) {
      sum.add({row[i]});
    }
    return sum.total().v;
  }
  float result = row[0];
  for (uint32_t i = 1; i < count; ++i) {
    result = kind == 1 ? larger(result, row[i]) : kind == 2 ? -larger(-result, -row[i]) : result * row[i];
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

} // namespace bmrt::npu
