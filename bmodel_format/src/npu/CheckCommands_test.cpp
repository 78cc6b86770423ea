// SPDX-License-Identifier: Apache-2.0
//===- CheckCommands_test.cpp - Breaks each rule of a command once ----------===//
#include "bmodel/npu/check.h"
#include "bmodel/npu/program.h"

#include "bmodel_format/test/TestChip.h"

#include <bit>
#include <cstring>
#include <gtest/gtest.h>

using namespace bmodel;
using namespace bmodel::npu;

namespace {

const Chip baseChip = chipNamed("npu-base"), odd = oddChip();

Tensor tensor(Region region, uint64_t offset, Type type, int32_t columns = 8) {
  int32_t size = int32_t(sizeOf(type));
  return {.offset = offset,
          .strides = {columns * columns * 16 * size, columns * columns * size, columns * size, size},
          .region = region,
          .type = type};
}

// Valid commands.

template <typename Command>
Command good();

template <>
conv_command good<conv_command>() {
  conv_command c;
  c.y = tensor(Region::local, 0, Type::i8), c.x = tensor(Region::local, 1024, Type::i8);
  c.w = tensor(Region::local, 2048, Type::i8), c.p = tensor(Region::local, 4096, Type::i32);
  c.r = tensor(Region::local, 8192, Type::i8);
  c.shape = {{1, 16, 8, 8}}, c.channels = 8, c.rows = c.columns = 8;
  c.output.flags = Output::perChannel;
  return c;
}
template <>
depthwise_command good<depthwise_command>() {
  depthwise_command c;
  c.y = tensor(Region::local, 0, Type::i8), c.x = tensor(Region::local, 1024, Type::i8);
  c.w = tensor(Region::local, 2048, Type::i8);
  c.shape = {{1, 16, 8, 8}}, c.rows = c.columns = 8;
  return c;
}
template <>
matmul_command good<matmul_command>() {
  matmul_command c;
  c.y = tensor(Region::local, 0, Type::i8), c.a = tensor(Region::local, 1024, Type::i8);
  c.b = tensor(Region::local, 2048, Type::i8), c.p = tensor(Region::local, 4096, Type::i32);
  c.r = tensor(Region::local, 8192, Type::i8);
  c.shape = {{1, 16, 1, 8}}, c.channels = 8;
  c.output.flags = Output::perChannel;
  return c;
}
template <>
pool_command good<pool_command>() {
  pool_command c;
  c.y = tensor(Region::local, 0, Type::i8), c.x = tensor(Region::local, 1024, Type::i8);
  c.shape = {{1, 16, 8, 8}}, c.rows = c.columns = 8;
  return c;
}
template <>
copy_command good<copy_command>() {
  return {
      .y = tensor(Region::local, 0, Type::i8), .x = tensor(Region::constants, 0, Type::i8), .shape = {{1, 16, 8, 8}}};
}
template <>
gather_command good<gather_command>() {
  gather_command c;
  c.y = tensor(Region::local, 0, Type::i8), c.x = tensor(Region::constants, 0, Type::i8);
  c.index = tensor(Region::constants, 4096, Type::i32, 1), c.shape = {{1, 16, 1, 8}}, c.rows = 16;
  return c;
}
template <>
map_command good<map_command>() {
  map_command c;
  c.y = tensor(Region::local, 0, Type::f32), c.a = tensor(Region::local, 1024, Type::i8);
  c.program = tensor(Region::constants, 0, Type::i32), c.shape = {{1, 16, 8, 8}}, c.length = c.plain = 1;
  return c;
}
template <>
reduce_command good<reduce_command>() {
  return {
      .y = tensor(Region::local, 0, Type::f32), .x = tensor(Region::local, 8192, Type::i8), .shape = {{1, 16, 8, 8}}};
}
template <>
lut_command good<lut_command>() {
  lut_command c;
  c.y = tensor(Region::local, 0, Type::i8), c.x = tensor(Region::local, 1024, Type::u8);
  c.table = {.offset = 2048, .strides = {0, 0, 0, 1}, .region = Region::local}, c.shape = {{1, 40, 2, 2}};
  return c;
}

template <>
dot_command good<dot_command>() {
  dot_command c;
  c.y = tensor(Region::local, 0, Type::f32), c.a = tensor(Region::local, 8192, Type::i8);
  c.b = tensor(Region::local, 16384, Type::f32), c.shape = {{1, 16, 8, 8}}, c.steps = 8;
  return c;
}
template <>
pick_command good<pick_command>() {
  pick_command c;
  c.y = tensor(Region::local, 0, Type::i8), c.x = tensor(Region::local, 8192, Type::i8);
  c.index = tensor(Region::local, 16384, Type::i16), c.shape = {{1, 16, 8, 8}}, c.columns = 8;
  return c;
}

template <typename Command>
std::string faultOf(const Command &command, const Chip &chip = baseChip) {
  Descriptor descriptor = encode(command);
  descriptor.header.id = 1;
  Status status;
  checkOperands(&descriptor, 1, chip, {.constants = 1 << 16, .workspace = 0, .io = {1 << 16, 1 << 16}, .inputs = 1},
                status);
  return status.message;
}

/// Applies `change` to a valid command; returns the message without the prefix that names the command.
template <typename Command>
std::string faultAfter(void (*change)(Command &), const Chip &chip = baseChip) {
  Command command = good<Command>();
  EXPECT_EQ(faultOf(command), "");
  change(command);
  std::string message = faultOf(command, chip);
  return message.substr(std::min(message.size(), message.find("): ") + 3));
}

} // namespace

TEST(CheckCommands, Products) {
  using C = conv_command;
  EXPECT_EQ(faultAfter<C>([](C &c) { c.channels = 0; }), "x: a dim is 0");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.columns = 0; }), "x: a dim is 0");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.x.type = Type::i32; }),
            "x: the matrix unit multiplies floats and 8-bit and 16-bit integers");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.x.type = c.w.type = Type::f32; }, chipNamed("npu-edge")),
            "x: the chip's matrix unit does not support f32");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.x.type = Type::bf16, c.w.type = Type::u8; }), "w: must be a float or i8");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.w.type = Type::u8; }), "");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.w.type = Type::i16; }), "w: must be i8 or u8");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.window.padValue = 128; }), "window: padValue is out of range for x's type");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.p.type = Type::f32; }), "p: must be i32");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.output.flags |= Output::fused; }), "output: fused requires floats");
  using D = depthwise_command;
  EXPECT_EQ(faultAfter<D>([](D &c) { c.output.flags |= Output::fused; }),
            "output: only conv and matmul support fused sums");
  EXPECT_EQ(faultAfter<D>([](D &c) { c.rows = 0; }), "x: a dim is 0");
  EXPECT_EQ(faultAfter<D>([](D &c) { c.window.kernel[0] = 17, c.window.kernel[1] = 16; }),
            "window: more than 256 taps");
  EXPECT_EQ(faultAfter<D>([](D &c) { c.x.type = Type::u8, c.window.padValue = -1; }),
            "window: padValue is out of range for x's type");
  EXPECT_EQ(faultAfter<D>([](D &c) { c.w.type = Type::i16; }), "w: must be i8 or u8");
  using P = pool_command;
  EXPECT_EQ(faultAfter<P>([](P &c) { c.output.flags |= Output::fused; }),
            "output: only conv and matmul support fused sums");
  EXPECT_EQ(faultAfter<P>([](P &c) { c.columns = 0; }), "x: a dim is 0");
  EXPECT_EQ(faultAfter<P>([](P &c) { c.x.type = Type::i32; }),
            "x: the matrix unit supports 8-bit and 16-bit types and f32");
  EXPECT_EQ(faultAfter<P>([](P &c) { c.largest = 2; }), "largest: must be 0 or 1");
}

TEST(CheckCommands, ProductsOfRows) {
  using C = matmul_command;
  EXPECT_EQ(faultAfter<C>([](C &) {}), "");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.channels = 0; }), "a: a dim is 0");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.shape.dims[2] = 2; }), "shape: h must be 1");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.shape.dims[3] = 65536; }), "shape: more than 65535 columns");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.a.type = Type::i32; }),
            "x: the matrix unit multiplies floats and 8-bit and 16-bit integers");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.b.type = Type::bf16; }), "b: must be float if a is float, integer otherwise");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.b.type = Type::i16; }), "w: must be i8 or u8");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.output.flags |= Output::fused; }), "output: fused requires floats");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.p = {}; }), "output: per-channel factors require p");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.a.lane = 1; }), "operand a begins in another lane than the result");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.b.lane = c.p.lane = 1; }), ""); // broadcast to all lanes
}

TEST(CheckCommands, OutputStages) {
  using C = conv_command;
  auto raw = [](void (*change)(C &)) {
    C command = good<C>();
    command.output.flags = Output::raw, command.y.type = Type::i32, command.r = {};
    for (int32_t &stride : command.y.strides) {
      stride *= 4;
    }
    command.x.offset = 32768;
    EXPECT_EQ(faultOf(command), "");
    change(command);
    return faultOf(command).substr(sizeof("command 0 (conv): ") - 1);
  };
  EXPECT_EQ(raw([](C &c) { c.y.type = Type::i16; }), "output: raw requires an i32 result");
  EXPECT_EQ(raw([](C &c) { c.x.type = c.w.type = Type::bf16; }), "output: raw requires integer operands");
  EXPECT_EQ(raw([](C &c) { c.output.flags |= Output::clamps; }), "output: raw excludes all other flags");
  EXPECT_EQ(raw([](C &c) { c.r = good<C>().r; }), "output: raw does not allow a residual");
  EXPECT_EQ(raw([](C &c) { c.output.function = Function::relu; }), "output: raw does not allow a function");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.p = {}; }), "output: per-channel factors require p");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.output.flags |= Output::integral; }),
            "output: integral, but the chip requantises in float");
  EXPECT_EQ(faultAfter<pool_command>([](pool_command &c) { c.output.flags = Output::perChannel; }),
            "output: per-channel factors require p");
}

TEST(CheckCommands, IntegralOutputStages) {
  using C = conv_command;
  auto integral = [](void (*change)(C &)) {
    C command = good<C>();
    command.output = {.flags = Output::integral | Output::clamps, .lower = -128, .upper = 127};
    command.output.factor = std::bit_cast<float>(1 << 30), command.output.divisor = std::bit_cast<float>(40);
    command.r = {};
    EXPECT_EQ(faultOf(command, odd), "");
    change(command);
    return faultOf(command, odd).substr(sizeof("command 0 (conv): ") - 1);
  };
  EXPECT_EQ(integral([](C &c) { c.output.flags = 0; }), "output: not integral, but the chip requantises in integers");
  EXPECT_EQ(integral([](C &c) { c.y.type = Type::f32; }), "output: integral requires integers");
  EXPECT_EQ(integral([](C &c) { c.r = good<C>().r; }), "output: integral does not allow a residual");
  EXPECT_EQ(integral([](C &c) { c.output.function = Function::silu; }), "output: integral does not allow a function");
  EXPECT_EQ(integral([](C &c) { c.output.flags |= Output::perChannel, c.p = {}; }),
            "output: per-channel factors require p");
  EXPECT_EQ(integral([](C &c) { c.output.flags = Output::integral; }), "output: integral requires the flag clamps");
  EXPECT_EQ(integral([](C &c) { c.output.flags |= Output::gains; }),
            "output: integral does not allow gains, late or stored");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.output.flags = Output::gains, c.p = {}; }),
            "output: per-channel factors require p");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.output.flags |= Output::late, c.r = {}; }), "output: late requires r");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.output.flags |= Output::stored; }), "output: stored requires the flag clamps");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.output.flags |= Output::stored | Output::clamps, c.y.type = Type::f32; }),
            "output: stored requires an integer result");
  EXPECT_EQ(integral([](C &c) { c.output.divisor = 0; }), "output: shift must be 1 to 62");
  EXPECT_EQ(integral([](C &c) { c.output.factor = -1; }), "output: mantissa must not be negative");
}

TEST(CheckCommands, Dma) {
  using C = copy_command;
  auto widen = [](C &c) {
    c.x.type = Type::f16, c.y.type = Type::f32;
    for (int i = 0; i < 4; ++i) {
      c.x.strides[i] *= 2, c.y.strides[i] *= 4;
    }
  };
  EXPECT_EQ(faultAfter<C>(widen), "");
  EXPECT_EQ(faultAfter<C>(widen, odd), "y: the chip's DMA does not convert from x's type to y's type");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.x.type = Type::i16; }),
            "y: the chip's DMA does not convert from x's type to y's type");
  using G = gather_command;
  EXPECT_EQ(faultAfter<G>([](G &c) { c.index.type = Type::f32; }), "index: must be i32");
  EXPECT_EQ(faultAfter<G>([](G &c) { c.x.type = Type::u8; }), "x: must have y's type");
  EXPECT_EQ(faultAfter<G>([](G &c) { c.shape.dims[2] = 2; }), "shape: h must be 1");
  EXPECT_EQ(faultAfter<G>([](G &c) { c.rows = 0; }), "rows: must not be 0");
  EXPECT_EQ(faultAfter<G>([](G &c) { c.x.region = Region::local; }), "x: must lie outside the chip");
  EXPECT_EQ(faultAfter<G>([](G &c) { c.index.region = Region::local; }), "");
}

TEST(CheckCommands, VectorUnit) {
  using M = map_command;
  EXPECT_EQ(faultAfter<M>([](M &c) { c.length = 0; }), "length: must be 1 to 64 instructions");
  EXPECT_EQ(faultAfter<M>([](M &c) { c.length = 65; }), "length: must be 1 to 64 instructions");
  EXPECT_EQ(faultAfter<M>([](M &c) { c.program.region = Region::io; }), "program: must lie among the constants");
  EXPECT_EQ(faultAfter<M>([](M &c) { c.program.type = Type::f32; }), "program: must be i32");
  EXPECT_EQ(faultAfter<M>([](M &c) { c.program.strides[3] = 8; }), "program: must be contiguous");
  EXPECT_EQ(faultAfter<reduce_command>([](reduce_command &c) { c.kind = 4; }), "");
  EXPECT_EQ(faultAfter<reduce_command>([](reduce_command &c) { c.kind = 5; }), "kind: unknown");
  using L = lut_command;
  EXPECT_EQ(faultAfter<L>([](L &c) { c.x.type = Type::i16; }), "x: must have an 8-bit type");
  EXPECT_EQ(faultAfter<L>([](L &c) { c.table.type = Type::u8; }), "table: must have y's type");
  using D = dot_command;
  EXPECT_EQ(faultAfter<D>([](D &c) { c.y.type = Type::i32; }), "y: must be f32");
  EXPECT_EQ(faultAfter<D>([](D &c) { c.s = c.y, c.s.type = Type::i32; }), "s: must be f32");
  EXPECT_EQ(faultAfter<D>([](D &c) { c.s = c.y; }), "");
  EXPECT_EQ(faultAfter<D>([](D &c) { c.steps = 0; }), "steps: must not be 0");
  EXPECT_EQ(faultAfter<D>([](D &c) { c.a = {}; }), "");
  EXPECT_EQ(faultAfter<D>([](D &c) { c.b = {}; }), "operand b is absent");
  EXPECT_EQ(faultAfter<D>([](D &c) { c.b.strides[1] = 0; }), "");
  EXPECT_EQ(faultAfter<D>([](D &c) { c.steps = 1 << 20; }), "operand a reaches outside its region");
  using P = pick_command;
  EXPECT_EQ(faultAfter<P>([](P &c) { c.index.type = Type::i8; }), "index: must be i16 or i32");
  EXPECT_EQ(faultAfter<P>([](P &c) { c.x.type = Type::u8; }), "x: must have y's type");
  EXPECT_EQ(faultAfter<P>([](P &c) { c.columns = 0; }), "columns: must not be 0");
  EXPECT_EQ(faultAfter<P>([](P &c) { c.columns = 1 << 20; }), "operand x reaches outside its region");
}

TEST(CheckOperands, PlacesAndTypes) {
  using C = conv_command;
  EXPECT_EQ(faultAfter<C>([](C &c) { c.y = {}; }), "operand y is absent");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.x = {}; }), "operand x is absent");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.w = {}; }), "operand w is absent");
  EXPECT_EQ(faultAfter<map_command>([](map_command &c) { c.a = {}; }), "operand a is absent");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.w.lane = 1; }), "operand w begins in another lane than the result");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.x.lane = 1; }), ""); // its channels are broadcast to all lanes
  EXPECT_EQ(faultAfter<C>([](C &c) { c.y.strides[2] = 4; }), "operand y has elements that share bytes");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.x.strides[3] = 0; }), "operand x has elements that share bytes");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.shape.dims[0] = 1u << 31, c.y.strides[0] = 0; }),
            "operand y has elements that share bytes");
  EXPECT_EQ(faultAfter<copy_command>([](copy_command &c) { c.x.strides[3] = 0; }), "");
  EXPECT_EQ(faultAfter<C>([](C &c) { c.w.region = Region::constants; }),
            "operand w lies outside the chip: compute commands work on local memory");
  auto types = [](C &c) {
    c.x.type = c.w.type = Type::bf16;
    for (int i = 0; i < 4; ++i) {
      c.x.strides[i] *= 2, c.w.strides[i] *= 2;
    }
  };
  EXPECT_EQ(faultAfter<C>(types, chipNamed("npu-edge")), "operand x has a type that the chip does not support");
  EXPECT_EQ(faultAfter<C>([](C &) {}, changedEdge({"types=[\"f32\"]"})),
            "operand y has a type that the chip does not support");
}

TEST(CheckPrograms, OperandsFillRegisters) {
  map_command map = good<map_command>();
  map.c = map.a;
  Instruction add{Op::add, 4, 0, 2, 0};
  unsigned char constants[sizeof add];
  auto faultOfProgram = [&] {
    std::memcpy(constants, &add, sizeof add);
    Descriptor descriptor = encode(map);
    Status status;
    checkPrograms(&descriptor, 1, constants, status);
    return std::string(status.message);
  };
  EXPECT_EQ(faultOfProgram(), "");
  add.b = 1; // absent, although a later operand is present
  EXPECT_EQ(faultOfProgram(), "command 0 (map): instruction 0 (add) reads register 1, which has not been written");
  add.b = 32;
  EXPECT_EQ(faultOfProgram(), "command 0 (map): instruction 0 (add) reads register 32, which has not been written");
  add.b = 0, add.y = 32;
  EXPECT_EQ(faultOfProgram(), "command 0 (map): instruction 0 (add) writes register 32; there are 32");
  add.y = 4, map.slow = 3;
  EXPECT_EQ(faultOfProgram(), "command 0 (map): states 1 plain and 3 slow instructions; its program has 1 and 0");
  add.op = Op(99);
  EXPECT_EQ(faultOfProgram(), "command 0 (map): instruction 0: unknown opcode 99");
}
