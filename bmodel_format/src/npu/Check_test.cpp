// SPDX-License-Identifier: Apache-2.0
//===- Check_test.cpp - Safe streams, and changes that make them unsafe -----===//
#include "bmodel/npu/check.h"

#include "bmodel_format/test/TestChip.h"

#include <gtest/gtest.h>

using namespace bmodel;
using namespace bmodel::npu;

namespace {

const Chip base = chipNamed("npu-base");
constexpr uint32_t kTiles = 5, kRow = 64, kChannels = 40;
constexpr uint64_t kTileBytes = uint64_t(kChannels) * kRow;

Tensor tile(Region region, uint64_t offset) {
  return {.offset = offset, .strides = {0, int32_t(kRow), int32_t(kRow), 1}, .region = region, .type = Type::i8};
}

/// Returns a stream that loads, squares and stores tile after tile, with two buffers of each kind so that the queues
/// overlap.
std::vector<Descriptor> pipeline() {
  std::vector<Descriptor> stream;
  auto push = [&](Descriptor command, uint32_t id, uint32_t wait) {
    command.header.id = id, command.header.wait = wait;
    stream.push_back(command);
  };
  Shape shape{{1, kChannels, 1, kRow}};
  auto load = [&](uint32_t i, uint32_t id, uint32_t wait) {
    copy_command c{.y = tile(Region::local, (i % 2) * 1024), .x = tile(Region::io, i * kTileBytes), .shape = shape};
    push(encode(c), id, wait);
  };
  auto store = [&](uint32_t i, uint32_t id, uint32_t wait) {
    copy_command c{.y = tile(Region(int(Region::io) + 1), i * kTileBytes),
                   .x = tile(Region::local, 4096 + (i % 2) * 1024),
                   .shape = shape};
    push(encode(c), id, wait);
  };
  // DMA: load 0, load 1, store 0, load 2, store 1, load 3, ... Compute i waits for load i; its wait also covers store i
  // - 2, which precedes load i.
  uint32_t dma = 0;
  load(0, ++dma, 0);
  std::vector<uint32_t> loaded = {dma};
  for (uint32_t i = 0; i < kTiles; ++i) {
    if (i + 1 < kTiles) {
      load(i + 1, ++dma, i);
      loaded.push_back(dma);
    }
    map_command square;
    square.y = tile(Region::local, 4096 + (i % 2) * 1024), square.a = tile(Region::local, (i % 2) * 1024),
    square.shape = shape;
    square.program = {.strides = {0, 0, 0, 4}, .region = Region::constants, .type = Type::i32};
    square.length = square.plain = 1;
    push(encode(square), i + 1, loaded[i]);
    store(i, ++dma, i + 1);
  }
  return stream;
}

RegionSizes sizesOf() { return {.constants = 8, .io = {kTiles * kTileBytes, kTiles * kTileBytes}, .inputs = 1}; }

std::string streamFault(const std::vector<Descriptor> &stream, RegionSizes sizes = sizesOf()) {
  Status status;
  bool good = checkOperands(stream.data(), stream.size(), base, sizes, status) &&
              checkOrder(stream.data(), stream.size(), base, sizes, status);
  EXPECT_EQ(good, status.ok());
  return status.message;
}

template <typename Command>
std::string streamFaultAfter(std::vector<Descriptor> stream, size_t index, void (*change)(Command &)) {
  Command command = stream[index].as<Command>();
  change(command);
  Header header = stream[index].header;
  stream[index] = encode(command), stream[index].header = header;
  return streamFault(stream);
}

} // namespace

TEST(Check, APipelineIsSafe) { EXPECT_EQ(streamFault(pipeline()), ""); }

TEST(Check, EveryWaitThatMattersIsMissed) {
  std::vector<Descriptor> good = pipeline();
  size_t caught = 0, waits = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    if (good[i].header.wait == 0) {
      continue;
    }
    ++waits;
    std::vector<Descriptor> bad = good;
    --bad[i].header.wait;
    caught += streamFault(bad) != "";
  }
  // A load's wait is implied by the wait of the store before it; all others are needed.
  EXPECT_EQ(waits, 2 * kTiles + kTiles - 2);
  EXPECT_EQ(caught, 2 * kTiles);
}

TEST(Check, RacesNameBothCommands) {
  std::vector<Descriptor> bad = pipeline();
  bad[2].header.wait = 0; // the first square
  EXPECT_EQ(streamFault(bad),
            "command 0 (copy) and command 2 (map) may run at the same time; both touch byte 0 of lane 0, "
            "one writes it: operands y and a");
}

TEST(Check, UnwrittenBytesAreNotRead) {
  EXPECT_EQ(streamFaultAfter<map_command>(pipeline(), 2, [](map_command &c) { c.a.offset += 2048; }),
            "command 2 (map) reads byte 2048 of lane 0, which no command has written: operand a");
  // 40 channels occupy 32 lanes and then 8 lanes again; only those 8 lanes have a second row.
  EXPECT_EQ(streamFaultAfter<map_command>(pipeline(), 2, [](map_command &c) { c.shape.dims[1] = 41; }),
            "command 2 (map) reads byte 64 of lane 8, which no command has written: operand a");
  std::vector<Descriptor> shorter = pipeline();
  shorter.pop_back();
  EXPECT_EQ(streamFault(shorter), "byte 10240 of buffer 1, an output, is never written");
}

TEST(Check, OperandsStayInTheirRegions) {
  auto load = [](void (*change)(copy_command &)) { return streamFaultAfter<copy_command>(pipeline(), 0, change); };
  EXPECT_EQ(load([](copy_command &c) { c.y.offset = base.laneBytes - 64; }),
            "command 0 (copy): operand y reaches outside its region");
  EXPECT_EQ(load([](copy_command &c) { c.x.offset = kTiles * kTileBytes - 100; }),
            "command 0 (copy): operand x reaches outside its region");
  EXPECT_EQ(load([](copy_command &c) { c.x.strides[1] = INT32_MAX; }),
            "command 0 (copy): operand x reaches outside its region");
  EXPECT_EQ(load([](copy_command &c) { c.x.strides[2] = INT32_MIN, c.shape.dims[2] = UINT32_MAX; }),
            "command 0 (copy): operand y reaches outside its region");
  EXPECT_EQ(load([](copy_command &c) { c.x.region = Region(20); }),
            "command 0 (copy): operand x reaches outside its region");
  EXPECT_EQ(load([](copy_command &c) { c.y.lane = 32; }),
            "command 0 (copy): operand y begins in a lane that the chip does not have");
  EXPECT_EQ(load([](copy_command &c) { c.x.lane = 1; }),
            "command 0 (copy): operand x names a lane, but does not lie in local memory");
  EXPECT_EQ(load([](copy_command &c) { std::swap(c.x, c.y); }),
            "command 0 (copy): operand y is written, but lies among inputs or constants");
  EXPECT_EQ(load([](copy_command &c) { c.x.type = c.y.type = Type::i16, c.y.offset = 1; }),
            "command 0 (copy): operand y has a stride that is not a multiple of its element size");
  EXPECT_EQ(load([](copy_command &c) { c.x.type = c.y.type = Type::i16, c.y.offset = 1, c.y.strides[3] = 2; }),
            "command 0 (copy): operand y has an offset that is not a multiple of its element size");
}

TEST(Check, ComputeWorksOnLocalMemoryAndTypesOfTheChip) {
  auto square = [](void (*change)(map_command &)) { return streamFaultAfter<map_command>(pipeline(), 2, change); };
  EXPECT_EQ(square([](map_command &c) { c.a = tile(Region::io, 0); }),
            "command 2 (map): operand a lies outside the chip: compute commands work on local memory");
  EXPECT_EQ(square([](map_command &c) { c.length = 0; }), "command 2 (map): length: must be 1 to 64 instructions");
  Chip edge = chipNamed("npu-edge");
  conv_command conv;
  conv.x = conv.y = conv.w = tile(Region::local, 0);
  conv.channels = conv.rows = conv.columns = 1;
  conv.x.type = conv.w.type = Type::bf16, conv.x.strides[3] = conv.w.strides[3] = 2;
  Descriptor command = encode(conv);
  command.header.id = 1;
  Status status;
  EXPECT_FALSE(checkOperands(&command, 1, edge, sizesOf(), status));
  EXPECT_STREQ(status.message, "command 0 (conv): operand x has a type that the chip does not support");
  conv.rows = 0;
  command = encode(conv), command.header.id = 1;
  EXPECT_FALSE(checkOperands(&command, 1, base, sizesOf(), status));
  EXPECT_STREQ(status.message, "command 0 (conv): x: a dim is 0");
  conv.rows = 1, conv.w.type = Type::u8;
  command = encode(conv), command.header.id = 1;
  EXPECT_FALSE(checkOperands(&command, 1, base, sizesOf(), status));
  EXPECT_STREQ(status.message, "command 0 (conv): w: must be a float or i8");
}

TEST(Check, AssignedWaitsAreThoseThatMatter) {
  std::vector<Descriptor> stream = pipeline(), again = stream;
  for (Descriptor &command : again) {
    command.header.id = command.header.wait = 0;
  }
  assignWaits(again, base);
  EXPECT_EQ(streamFault(again), "");
  size_t waits = 0;
  for (size_t i = 0; i < stream.size(); ++i) {
    EXPECT_EQ(again[i].header.id, stream[i].header.id);
    EXPECT_LE(again[i].header.wait, stream[i].header.wait);
    waits += again[i].header.wait != 0;
  }
  EXPECT_EQ(waits, 2 * kTiles); // see EveryWaitThatMattersIsMissed
}
