// SPDX-License-Identifier: Apache-2.0
//===- CheckCommands.cpp - Constraints of commands on a chip ----------------===//
#include "CheckCommands.h"

#include "bmodel/npu/program.h"

#include <bit>
#include <string>

namespace bmodel::npu {
namespace {

constexpr uint32_t kMostTaps = 256;

/// Returns the first of two faults, either of which may be null.
const char *firstOf(const char *a, const char *b) { return a ? a : b; }

//--- The matrix unit ---

constexpr uint8_t kBehind = Output::gains | Output::late | Output::stored;

const char *faultOfIntegral(const Output &output, const Tensor &x, const Tensor &y, const Tensor *r, const Tensor *p) {
  int32_t shift = std::bit_cast<int32_t>(output.divisor);
  bool perChannel = output.flags & Output::perChannel;
  return isFloat(x.type) || isFloat(y.type)             ? "output: integral requires integers"
         : r && r->region != Region::none               ? "output: integral does not allow a residual"
         : output.function != Function::none            ? "output: integral does not allow a function"
         : perChannel && p && p->region == Region::none ? "output: per-channel factors require p"
         : !(output.flags & Output::clamps)             ? "output: integral requires the flag clamps"
         : output.flags & kBehind                       ? "output: integral does not allow gains, late or stored"
         : !perChannel && (shift < 1 || shift > 62)     ? "output: shift must be 1 to 62"
         : !perChannel && std::bit_cast<int32_t>(output.factor) < 0 ? "output: mantissa must not be negative"
                                                                    : nullptr;
}

/// r and p are null if the command does not have that operand.
const char *faultOf(const Output &output, const Tensor &x, const Tensor &y, const Tensor *r, const Tensor *p,
                    const Chip &chip) {
  if (p && p->region != Region::none && p->type != Type::i32) {
    return "p: must be i32";
  }
  if (output.flags & Output::raw) {
    return isFloat(x.type)                     ? "output: raw requires integer operands"
           : y.type != Type::i32               ? "output: raw requires an i32 result"
           : output.flags != Output::raw       ? "output: raw excludes all other flags"
           : r && r->region != Region::none    ? "output: raw does not allow a residual"
           : output.function != Function::none ? "output: raw does not allow a function"
                                               : nullptr;
  }
  bool integral = output.flags & Output::integral;
  if (integral && chip.requantise == "float") {
    return "output: integral, but the chip requantises in float";
  }
  if (!integral && chip.requantise != "float" && !isFloat(x.type) && !isFloat(y.type)) {
    return "output: not integral, but the chip requantises in integers";
  }
  if (integral) {
    return faultOfIntegral(output, x, y, r, p);
  }
  bool lonely = output.flags & (Output::perChannel | Output::gains) && (!p || p->region == Region::none);
  bool isLate = output.flags & Output::late, isStored = output.flags & Output::stored;
  return lonely                                         ? "output: per-channel factors require p"
         : isLate && (!r || r->region == Region::none)  ? "output: late requires r"
         : isStored && !(output.flags & Output::clamps) ? "output: stored requires the flag clamps"
         : isStored && isFloat(y.type)                  ? "output: stored requires an integer result"
                                                        : nullptr;
}

/// Checks that x's type can represent padValue: sums of products are exact only for such values.
const char *faultOf(const Window &window, Type x) {
  int32_t low = x == Type::u8   ? 0
                : x == Type::i8 ? -128
                                : INT16_MIN,
          high = x == Type::u8   ? 255
                 : x == Type::i8 ? 127
                                 : INT16_MAX;
  return window.padValue < low || window.padValue > high ? "window: padValue is out of range for x's type" : nullptr;
}

const char *faultOfProducts(const Tensor &x, const Tensor &w, const Chip &chip) {
  if (x.type == Type::i32) {
    return "x: the matrix unit multiplies floats and 8-bit and 16-bit integers";
  }
  if (!isFloat(x.type)) {
    return w.type == Type::i8 || w.type == Type::u8 ? nullptr : "w: must be i8 or u8";
  }
  // The matrix unit multiplies f32 on the multipliers of bf16 and f16.
  bool narrow = x.type != Type::f32 && w.type != Type::f32;
  bool multiplies = chip.computes("bf16") || chip.computes("f16");
  return !isFloat(w.type) && w.type != Type::i8 ? "w: must be a float or i8"
         : narrow || multiplies                 ? nullptr
                                                : "x: the chip's matrix unit does not support f32";
}

constexpr const char *kOnlyConvFuses = "output: only conv and matmul support fused sums";

const char *faultOf(const conv_command &c, const Chip &chip) {
  if (!c.channels || !c.rows || !c.columns) {
    return "x: a dim is 0";
  }
  if (c.output.flags & Output::fused && !isFloat(c.x.type)) {
    return "output: fused requires floats";
  }
  return firstOf(firstOf(faultOfProducts(c.x, c.w, chip), faultOf(c.window, c.x.type)),
                 faultOf(c.output, c.x, c.y, &c.r, &c.p, chip));
}

const char *faultOf(const depthwise_command &c, const Chip &chip) {
  if (!c.rows || !c.columns) {
    return "x: a dim is 0";
  }
  if (uint32_t(c.window.kernel[0]) * c.window.kernel[1] > kMostTaps) {
    return "window: more than 256 taps";
  }
  if (c.output.flags & Output::fused) {
    return kOnlyConvFuses;
  }
  return firstOf(firstOf(faultOfProducts(c.x, c.w, chip), faultOf(c.window, c.x.type)),
                 faultOf(c.output, c.x, c.y, &c.r, &c.p, chip));
}

const char *faultOf(const pool_command &c, const Chip &chip) {
  if (!c.rows || !c.columns) {
    return "x: a dim is 0";
  }
  if (c.x.type == Type::i32) {
    return "x: the matrix unit supports 8-bit and 16-bit types and f32";
  }
  if (c.largest > 1) {
    return "largest: must be 0 or 1";
  }
  if (c.output.flags & Output::fused) {
    return kOnlyConvFuses;
  }
  return firstOf(faultOf(c.window, c.x.type), faultOf(c.output, c.x, c.y, nullptr, nullptr, chip));
}

const char *faultOf(const matmul_command &c, const Chip &chip) {
  if (!c.channels) {
    return "a: a dim is 0";
  }
  if (c.shape.dims[2] != 1) {
    return "shape: h must be 1";
  }
  if (c.shape.dims[3] > UINT16_MAX) {
    return "shape: more than 65535 columns";
  }
  if (isFloat(c.a.type) != isFloat(c.b.type)) {
    return "b: must be float if a is float, integer otherwise";
  }
  if (c.output.flags & Output::fused && !isFloat(c.a.type)) {
    return "output: fused requires floats";
  }
  return firstOf(faultOfProducts(c.a, c.b, chip), faultOf(c.output, c.a, c.y, &c.r, &c.p, chip));
}

//--- DMA ---

const char *faultOf(const copy_command &c, const Chip &chip) {
  if (c.x.type == c.y.type) {
    return nullptr;
  }
  std::string cast = std::string(nameOf(c.x.type)) + "-" + nameOf(c.y.type);
  for (const std::string &each : chip.casts) {
    if (each == cast) {
      return nullptr;
    }
  }
  return "y: the chip's DMA does not convert from x's type to y's type";
}

const char *faultOf(const fill_command &, const Chip &) { return nullptr; }

const char *faultOf(const gather_command &c, const Chip &) {
  return c.index.type != Type::i32     ? "index: must be i32"
         : c.x.type != c.y.type        ? "x: must have y's type"
         : c.shape.dims[2] != 1        ? "shape: h must be 1"
         : !c.rows                     ? "rows: must not be 0"
         : c.x.region == Region::local ? "x: must lie outside the chip"
                                       : nullptr;
}

//--- The vector unit ---

const char *faultOf(const map_command &c, const Chip &) {
  return c.length == 0 || c.length > kMostInstructions ? "length: must be 1 to 64 instructions"
         : c.program.region != Region::constants       ? "program: must lie among the constants"
         : c.program.type != Type::i32                 ? "program: must be i32"
         : c.program.strides[3] != 4                   ? "program: must be contiguous"
                                                       : nullptr;
}

const char *faultOf(const reduce_command &c, const Chip &) { return c.kind > 4 ? "kind: unknown" : nullptr; }

const char *faultOf(const lut_command &c, const Chip &) {
  return sizeOf(c.x.type) != 1      ? "x: must have an 8-bit type"
         : c.table.type != c.y.type ? "table: must have y's type"
                                    : nullptr;
}

const char *faultOf(const dot_command &c, const Chip &) {
  bool startsFromOther = c.s.region != Region::none && c.s.type != Type::f32;
  return c.y.type != Type::f32 ? "y: must be f32"
         : startsFromOther     ? "s: must be f32"
         : !c.steps            ? "steps: must not be 0"
                               : nullptr;
}

const char *faultOf(const pick_command &c, const Chip &) {
  return c.index.type != Type::i16 && c.index.type != Type::i32 ? "index: must be i16 or i32"
         : c.x.type != c.y.type                                 ? "x: must have y's type"
         : !c.columns                                           ? "columns: must not be 0"
                                                                : nullptr;
}

} // namespace

const char *faultOf(const Descriptor &command, const Chip &chip) {
  switch (command.header.opcode) {
#define NPU_COMMAND(name, opcode, queue, meaning)                                                                      \
  case Opcode::name:                                                                                                   \
    return faultOf(command.as<name##_command>(), chip);
#include "bmodel/npu/isa.inc"
  }
  return "opcode: unknown";
}

} // namespace bmodel::npu
