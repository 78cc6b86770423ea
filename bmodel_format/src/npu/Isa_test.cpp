// SPDX-License-Identifier: Apache-2.0
//===- Isa_test.cpp - Encoding round trips and rejected commands -----------===//
#include "bmodel/npu/isa.h"

#include <gtest/gtest.h>
#include <random>

using namespace bmodel;
using namespace bmodel::npu;

namespace {

/// Fills every field of a command with random valid values.
class RandomCommand {
public:
  explicit RandomCommand(unsigned seed) : generator(seed) {}

  Descriptor operator()(const CommandText &text, uint32_t id, uint32_t wait) {
    Descriptor command;
    command.header = {text.opcode, {}, id, wait, below(1u << 31)};
    for (const FieldText &field : text.fields) {
      std::string_view type = field.type;
      type == "Tensor"   ? put(command, field, tensor())
      : type == "Shape"  ? put(command, field, shape())
      : type == "Window" ? put(command, field, window())
      : type == "Output" ? put(command, field, output())
      : type == "u8"     ? put(command, field, uint8_t(below(256)))
      : type == "u16"    ? put(command, field, uint16_t(below(65536)))
                         : put(command, field, below(~0u));
    }
    return command;
  }

private:
  uint32_t below(uint32_t limit) { return uint32_t(generator() % limit); }
  float real() { return std::uniform_real_distribution<float>(-1e3f, 1e3f)(generator); }
  template <typename T>
  void put(Descriptor &command, const FieldText &field, T value) {
    memcpy(command.body + field.offset, &value, sizeof value);
  }
  Tensor tensor() {
    Tensor t{.offset = (uint64_t(below(1u << 20)) << 30) + below(1u << 30), .lane = uint16_t(below(64))};
    for (int32_t &stride : t.strides) {
      stride = int32_t(below(1u << 30)) - (1 << 29);
    }
    uint32_t region = below(6);
    t.region = Region(region < 4 ? region : 12 + region);
    t.type = Type(below(7));
    return t;
  }
  Shape shape() { return {{1 + below(9), 1 + below(2048), 1 + below(999), 1 + below(999)}}; }
  Window window() {
    Window w;
    for (int axis = 0; axis < 2; ++axis) {
      w.kernel[axis] = uint8_t(1 + below(255)), w.step[axis] = uint8_t(1 + below(255));
      w.dilation[axis] = uint8_t(1 + below(255)), w.spread[axis] = uint8_t(1 + below(255));
      w.padding[axis] = int16_t(below(65536));
    }
    w.padValue = int16_t(below(65536));
    return w;
  }
  Output output() {
    return {Function(below(10)),
            uint8_t(below(16)),
            int16_t(below(65536)),
            real(),
            real(),
            real(),
            real(),
            real(),
            real(),
            real()};
  }

  std::mt19937_64 generator;
};

/// Returns a stream of a copy and a convolution that waits for it.
std::vector<Descriptor> smallStream() {
  copy_command copy;
  copy.y.region = Region::local, copy.x.region = Region::constants;
  conv_command conv;
  conv.x.region = conv.w.region = conv.y.region = Region::local;
  std::vector<Descriptor> stream = {encode(copy), encode(conv)};
  stream[0].header.id = stream[1].header.id = stream[1].header.wait = 1;
  return stream;
}

std::string faultOf(const std::vector<Descriptor> &stream) {
  Status status;
  EXPECT_FALSE(verifyStream(stream.data(), stream.size(), status));
  return status.message;
}

} // namespace

TEST(Isa, TextAndBackIsTheSameBytes) {
  RandomCommand random(1);
  for (int round = 0; round < 200; ++round) {
    for (const CommandText &text : commandTexts()) {
      Descriptor command = random(text, uint32_t(1 + round), uint32_t(round)), again;
      std::string line = disassemble(command);
      Status status;
      ASSERT_TRUE(assemble(line, again, status)) << line << "\n" << status.message;
      ASSERT_EQ(memcmp(&command, &again, sizeof command), 0) << line;
    }
  }
}

TEST(Isa, RandomCommandsAreValid) {
  RandomCommand random(2);
  uint32_t ids[2] = {};
  std::vector<Descriptor> stream;
  for (int round = 0; round < 50; ++round) {
    for (const CommandText &text : commandTexts()) {
      stream.push_back(random(text, ++ids[int(text.queue)], ids[1 - int(text.queue)]));
    }
  }
  Status status;
  EXPECT_TRUE(verifyStream(stream.data(), stream.size(), status)) << status.message;
}

TEST(Isa, LinesAreForReading) {
  conv_command conv;
  conv.x = {.offset = 0x40, .strides = {0, 64, 8, 1}, .region = Region::local, .type = Type::u8};
  conv.shape = {{1, 32, 8, 8}};
  conv.window.kernel[0] = conv.window.kernel[1] = 3;
  Descriptor command = encode(conv);
  command.header.id = 3, command.header.wait = 2;
  EXPECT_EQ(disassemble(command),
            "conv id=3 wait=2 layer=0 x=local:0x40/l0/u8/0,64,8,1 shape=1,32,8,8 window=k3,3/s1,1/d1,1/x1,1/p0,0/v0");
}

TEST(Isa, WrongLinesAreTold) {
  Descriptor command;
  Status status;
  for (auto [line, message] :
       {std::pair("jump id=1", "unknown command 'jump'"), std::pair("", "unknown command ''"),
        std::pair("copy id=x", "copy: 'id=x' is not a valid value of its field"),
        std::pair("copy color=1", "copy has no field 'color=1'"),
        std::pair("copy shape=1,2,3", "copy: 'shape=1,2,3' is not a valid value of its field"),
        std::pair("copy shape=1,2,3,4,5", "copy: 'shape=1,2,3,4,5' is not a valid value of its field"),
        std::pair("copy x=moon:0x0/l0/i8/0,0,0,0",
                  "copy: 'x=moon:0x0/l0/i8/0,0,0,0' is not a valid value of its field"),
        std::pair("copy  id=1", "copy has no field ''")}) {
    EXPECT_FALSE(assemble(line, command, status)) << line;
    EXPECT_STREQ(status.message, message);
  }
}

TEST(Isa, StreamsAreVerified) {
  Status status;
  std::vector<Descriptor> good = smallStream(), bad = good;
  ASSERT_TRUE(verifyStream(good.data(), good.size(), status)) << status.message;
  bad[0].header.opcode = Opcode(99);
  EXPECT_EQ(faultOf(bad), "command 0: unknown opcode 99");
  bad = good, bad[1].header.id = 2;
  EXPECT_EQ(faultOf(bad), "command 1 (conv): id is 2, expected is 1, the next id of its queue");
  bad = good, bad[1].header.wait = 2;
  EXPECT_EQ(faultOf(bad), "command 1 (conv): waits for command 2 of the other queue, but only 1 precede it");
  bad = good, bad[0].header.wait = 1;
  EXPECT_EQ(faultOf(bad), "command 0 (copy): waits for command 1 of the other queue, but only 0 precede it");
  bad = good, bad[0].header.reserved[1] = 1;
  EXPECT_EQ(faultOf(bad), "command 0 (copy): bytes outside the fields are not 0");
  copy_command copy;
  copy.shape.dims[2] = 0;
  bad = {encode(copy)}, bad[0].header.id = 1;
  EXPECT_EQ(faultOf(bad), "command 0 (copy): field shape: a dim is 0");
  copy = {}, copy.x.type = Type(7);
  bad = {encode(copy)}, bad[0].header.id = 1;
  EXPECT_EQ(faultOf(bad), "command 0 (copy): field x: type is unknown");
  copy = {}, copy.x.region = Region(9);
  bad = {encode(copy)}, bad[0].header.id = 1;
  EXPECT_EQ(faultOf(bad), "command 0 (copy): field x: region is unknown");
  conv_command conv;
  conv.window.step[1] = 0;
  bad = {encode(conv)}, bad[0].header.id = 1;
  EXPECT_EQ(faultOf(bad), "command 0 (conv): field window: kernel, step, dilation or spread is 0");
  conv = {}, conv.output.function = Function(10);
  bad = {encode(conv)}, bad[0].header.id = 1;
  EXPECT_EQ(faultOf(bad), "command 0 (conv): field output: function is unknown");
}

TEST(Isa, OpcodesAndQueuesAreUnique) {
  for (const CommandText &a : commandTexts()) {
    for (const CommandText &b : commandTexts()) {
      EXPECT_EQ(&a == &b, a.opcode == b.opcode);
    }
    EXPECT_EQ(a.queue == Queue::dma, int(a.opcode) < 16) << a.name;
    EXPECT_EQ(findCommand(a.opcode), &a);
  }
}
