// SPDX-License-Identifier: Apache-2.0
//===- Operands.cpp - Operands of a command ---------------------------------===//
#include "bmodel/npu/isa.h"

namespace bmodel::npu {
namespace {

/// Properties of an operand that is read; see Operand.
enum Property : uint8_t { optional = 1, repeats = 2, anyLane = 4 };

/// Collects the operands of a command; omits optional operands that are absent.
class Operands {
public:
  explicit Operands(Operand (&out)[kMostOperands]) : out(out) {}

  void writes(const char *name, const Tensor &tensor, const Shape &shape) {
    out[count++] = {.name = name, .tensor = tensor, .shape = shape, .written = true};
  }
  void reads(const char *name, const Tensor &tensor, const Shape &shape, int properties = 0) {
    if (tensor.region != Region::none || !(properties & optional)) {
      out[count++] = {name,
                      tensor,
                      shape,
                      false,
                      (properties & optional) != 0,
                      (properties & repeats) != 0,
                      (properties & anyLane) != 0};
    }
  }
  size_t count = 0;

private:
  Operand (&out)[kMostOperands];
};

/// Returns the shape of p: bias, factor and further parameters of each output channel or column.
Shape parametersOf(uint32_t outputs, const Output &output) {
  return {{1, outputs, 1, output.flags & (Output::integral | Output::gains) ? 3u : 2u}};
}

void list(const copy_command &c, Operands &operands) {
  operands.writes("y", c.y, c.shape);
  operands.reads("x", c.x, c.shape, repeats);
}
void list(const fill_command &c, Operands &operands) { operands.writes("y", c.y, c.shape); }
void list(const gather_command &c, Operands &operands) {
  operands.writes("y", c.y, c.shape);
  operands.reads("x", c.x, {{c.shape.dims[0], c.rows, 1, c.shape.dims[3]}});
  operands.reads("index", c.index, {{1, c.shape.dims[1], 1, 1}});
}

void list(const conv_command &c, Operands &operands) {
  uint32_t taps = uint32_t(c.window.kernel[0]) * c.window.kernel[1];
  operands.writes("y", c.y, c.shape);
  operands.reads("x", c.x, {{c.shape.dims[0], c.channels, c.rows, c.columns}}, anyLane);
  operands.reads("w", c.w, {{1, c.shape.dims[1], taps, c.channels}});
  operands.reads("r", c.r, c.shape, optional);
  operands.reads("p", c.p, parametersOf(c.shape.dims[1], c.output), optional);
}
void list(const depthwise_command &c, Operands &operands) {
  operands.writes("y", c.y, c.shape);
  operands.reads("x", c.x, {{c.shape.dims[0], c.shape.dims[1], c.rows, c.columns}});
  operands.reads("w", c.w, {{1, c.shape.dims[1], c.window.kernel[0], c.window.kernel[1]}});
  operands.reads("r", c.r, c.shape, optional);
  operands.reads("p", c.p, parametersOf(c.shape.dims[1], c.output), optional);
}
void list(const pool_command &c, Operands &operands) {
  operands.writes("y", c.y, c.shape);
  operands.reads("x", c.x, {{c.shape.dims[0], c.shape.dims[1], c.rows, c.columns}});
}

void list(const matmul_command &c, Operands &operands) {
  const uint32_t *dims = c.shape.dims;
  operands.writes("y", c.y, c.shape);
  operands.reads("a", c.a, {{dims[0], dims[1], 1, c.channels}});
  operands.reads("b", c.b, {{dims[0], c.channels, 1, dims[3]}}, repeats | anyLane);
  operands.reads("r", c.r, c.shape, optional | repeats);
  operands.reads("p", c.p, parametersOf(dims[3], c.output), optional | anyLane);
}

void list(const map_command &c, Operands &operands) {
  operands.writes("y", c.y, c.shape);
  operands.reads("a", c.a, c.shape, repeats);
  operands.reads("b", c.b, c.shape, optional | repeats);
  operands.reads("c", c.c, c.shape, optional | repeats);
  operands.reads("d", c.d, c.shape, optional | repeats);
  operands.reads("program", c.program, {{1, 1, 1, 2u * c.length}}, anyLane);
}
void list(const reduce_command &c, Operands &operands) {
  operands.writes("y", c.y, {{c.shape.dims[0], c.shape.dims[1], c.shape.dims[2], 1}});
  operands.reads("x", c.x, c.shape);
}
void list(const lut_command &c, Operands &operands) {
  operands.writes("y", c.y, c.shape);
  operands.reads("x", c.x, c.shape);
  operands.reads("table", c.table, {{1, c.shape.dims[1], 1, 256}}, repeats);
}
void list(const dot_command &c, Operands &operands) {
  const uint32_t *dims = c.shape.dims;
  operands.writes("y", c.y, c.shape);
  operands.reads("a", c.a, {{dims[0], dims[1], dims[2], c.steps}}, optional | repeats);
  operands.reads("b", c.b, {{dims[0], dims[1], c.steps, dims[3]}}, repeats);
  operands.reads("s", c.s, c.shape, optional | repeats);
}
void list(const pick_command &c, Operands &operands) {
  operands.writes("y", c.y, c.shape);
  operands.reads("x", c.x, {{c.shape.dims[0], c.shape.dims[1], c.shape.dims[2], c.columns}}, repeats);
  operands.reads("index", c.index, {{1, c.shape.dims[1], 1, c.shape.dims[3]}}, repeats);
}

} // namespace

size_t operandsOf(const Descriptor &command, Operand (&operands)[kMostOperands]) {
  Operands listed(operands);
  switch (command.header.opcode) {
#define NPU_COMMAND(name, opcode, queue, meaning)                                                                      \
  case Opcode::name:                                                                                                   \
    list(command.as<name##_command>(), listed);                                                                        \
    break;
#include "bmodel/npu/isa.inc"
  }
  return listed.count;
}

} // namespace bmodel::npu
