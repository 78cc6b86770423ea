// SPDX-License-Identifier: Apache-2.0
//===- Latency_test.cpp - Times of commands, worked out by hand -------------===//
#include "bmodel/npu/latency.h"

#include "bmodel_format/test/TestChip.h"

#include <gtest/gtest.h>

using namespace bmodel::npu;

namespace {

/// npu-base: 32 lanes, 32 x 4 MACs per lane, 16-byte ports, 16 banks of 8 KiB, 31.29 bytes of DDR per cycle.
const Chip base = chipNamed("npu-base");

Tensor local(uint64_t offset, uint32_t rows, uint32_t columns, Type type = Type::i8) {
  int32_t size = int32_t(sizeOf(type));
  return {.offset = offset,
          .strides = {0, int32_t(rows * columns) * size, int32_t(columns) * size, size},
          .region = Region::local,
          .type = type};
}

Tensor ddr(uint32_t channels, uint32_t rows, uint32_t columns, Type type = Type::i8) {
  int32_t size = int32_t(sizeOf(type)), plane = int32_t(rows * columns) * size;
  return {.strides = {int32_t(channels) * plane, plane, int32_t(columns) * size, size},
          .region = Region::workspace,
          .type = type};
}

conv_command conv(uint32_t in, uint32_t out, uint16_t size, uint8_t kernel) {
  conv_command c;
  c.shape = {{1, out, size, size}};
  c.channels = in, c.rows = c.columns = size;
  c.window.kernel[0] = c.window.kernel[1] = kernel;
  c.window.padding[0] = c.window.padding[1] = int16_t(kernel / 2);
  // Operands in separate banks: 0 to 3, 4 to 7, 8 and on.
  c.x = local(0, size, size), c.y = local(65536, size, size);
  c.w = local(32768, 1, 1);
  return c;
}

} // namespace

TEST(Latency, ConvolutionRunsAtThePeakWhereItFits) {
  // 64 -> 64 channels of 3x3 on 32x32: 2 x 2 x 9 x 1024 / 4 cycles; all lanes and multipliers are busy.
  Cost cost = costOf(encode(conv(64, 64, 32, 3)), base);
  EXPECT_EQ(cost.macs, 64u * 64 * 9 * 1024);
  EXPECT_EQ(cost.cycles, 2 * 2 * 9 * 256 + 32 + 32);
  EXPECT_EQ(cost.bound, Bound::multiply);
  double peak = double(cost.macs) / (base.lanes * base.macsPerLane());
  EXPECT_EQ(cost.cycles - 64, peak);
}

TEST(Latency, TypesRunAtTheirShareOfTheRate) {
  conv_command c = conv(64, 64, 16, 1); // small enough for 16-bit operands in separate banks
  double int8 = costOf(encode(c), base).cycles - 64;
  c.x.type = Type::i16;
  EXPECT_EQ(costOf(encode(c), base).cycles - 64, 2 * int8);
  c.x.type = c.w.type = Type::bf16;
  EXPECT_EQ(costOf(encode(c), base).cycles - 64, 4 * int8);
  c.w.type = Type::f32; // multiplied as two parts
  EXPECT_EQ(costOf(encode(c), base).cycles - 64, 8 * int8);
  c.x.type = Type::f32;
  EXPECT_EQ(costOf(encode(c), base).cycles - 64, 16 * int8);
}

TEST(Latency, FewPositionsWaitForWeights) {
  // One position: each of the 64 chunks of 32 weights takes two reads of a 16-byte port.
  conv_command c = conv(2048, 1000, 1, 1);
  c.window.padding[0] = c.window.padding[1] = 0;
  EXPECT_EQ(costOf(encode(c), base).cycles, 32 * 64 * 2 + 64);
}

TEST(Latency, ShallowSumsWaitForTheOutputStage) {
  conv_command c = conv(32, 32, 32, 1);
  EXPECT_EQ(costOf(encode(c), base).cycles, 256 + 64);
  c.output.function = Function::silu; // one result per cycle instead of four
  Cost cost = costOf(encode(c), base);
  EXPECT_EQ(cost.cycles, 1024 + 64);
  EXPECT_EQ(cost.bound, Bound::output);
}

TEST(Latency, GainsAreASecondWayThroughTheMultiplier) {
  conv_command c = conv(32, 32, 32, 1);
  double plain = costOf(encode(c), base).cycles;
  c.output.flags = Output::gains;
  EXPECT_EQ(costOf(encode(c), base).cycles - 64, 2 * (plain - 64));
}

TEST(Latency, RowsOverLanesAreMultipliedAtThePeak) {
  // 64 rows of 96 by 128 columns: 2 groups of rows, 3 taps, 32 blocks of 4 columns. Operands in separate banks.
  matmul_command c{.shape = {{1, 64, 1, 128}}, .channels = 96};
  c.a = local(0, 1, 96), c.b = local(32768, 1, 128), c.y = local(65536, 1, 128);
  Cost cost = costOf(encode(c), base);
  EXPECT_EQ(cost.macs, 64u * 96 * 128);
  EXPECT_EQ(cost.cycles, 2 * 3 * 32 + 64);
  EXPECT_EQ(cost.bound, Bound::multiply);
  // Bias and factor of a column are broadcast like b, 128 bytes per cycle.
  c.p = {.offset = 98304, .strides = {0, 8, 0, 4}, .region = Region::local, .type = Type::i32};
  EXPECT_EQ(costOf(encode(c), base).cycles, 2 * (3 * 32 + 128 * 8 / 128) + 64);
  c.output.flags = Output::gains;
  EXPECT_EQ(costOf(encode(c), base).cycles, 2 * (3 * 32 + 128 * 12 / 128) + 64);
  c.p = {}, c.output.flags = 0, c.a.type = Type::i16; // half the rate
  EXPECT_EQ(costOf(encode(c), base).cycles, 2 * 2 * 3 * 32 + 64);
  c.a.type = Type::i8, c.shape.dims[0] = 3;
  EXPECT_EQ(costOf(encode(c), base).cycles, 3 * 2 * 3 * 32 + 64);
  c.shape.dims[0] = 1, c.shape.dims[1] = 33; // one row more than lanes costs as much as two full groups
  EXPECT_EQ(costOf(encode(c), base).cycles, 2 * 3 * 32 + 64);
}

TEST(Latency, DepthwiseIsAnEighth) {
  depthwise_command c;
  c.shape = {{1, 32, 32, 32}};
  c.rows = c.columns = 32;
  c.window.kernel[0] = c.window.kernel[1] = 3;
  c.x = local(0, 32, 32), c.y = local(65536, 32, 32), c.w = local(32768, 3, 3);
  Cost cost = costOf(encode(c), base);
  EXPECT_EQ(cost.cycles, 1024 * 9 / 16.0 + 64);
  EXPECT_EQ(cost.macs, 32u * 1024 * 9);
}

TEST(Latency, OperandsInOneBankWaitForItsPort) {
  depthwise_command c;
  c.shape = {{1, 32, 32, 32}};
  c.rows = c.columns = 32;
  c.x = local(0, 32, 32, Type::i16), c.y = local(2048, 32, 32, Type::i16), c.w = local(32768, 1, 1);
  c.output.flags = Output::raw, c.y.type = Type::i32; // 4 bytes per result
  Cost cost = costOf(encode(c), base);
  EXPECT_EQ(cost.bound, Bound::port);
  EXPECT_EQ(cost.cycles, 1024 * (2 + 4) / 16.0 + 64);
}

TEST(Latency, DmaPaysLatencyBurstsAndLanes) {
  copy_command load;
  load.shape = {{1, 32, 32, 32}};
  load.x = ddr(32, 32, 32), load.y = local(0, 32, 32);
  Cost cost = costOf(encode(load), base);
  double perCycle = 32 * 0.88 / 0.9;
  EXPECT_DOUBLE_EQ(cost.cycles, 200 + 32 * 1024 / perCycle);
  EXPECT_EQ(cost.bound, Bound::ddr);
  EXPECT_EQ(cost.read.asked, 32768u);
  EXPECT_EQ(cost.read.moved, 32768u);

  load.shape = {{1, 32, 8, 8}}; // a corner: rows of 8 bytes pay for bursts of 64
  cost = costOf(encode(load), base);
  EXPECT_EQ(cost.read.asked, 32u * 64);
  EXPECT_EQ(cost.read.moved, 32u * 8 * 64 * 2); // rows lie 32 bytes apart: each may cross a burst boundary
  load.x.offset = 0, load.x.strides[2] = 64, load.x.strides[1] = 2048;
  EXPECT_EQ(costOf(encode(load), base).read.moved, 32u * 8 * 64);

  load = {};
  load.shape = {{1, 3, 224, 224}};
  load.x = ddr(3, 224, 224), load.y = local(0, 224, 224);
  cost = costOf(encode(load), base); // three lanes take 16 bytes per cycle each: DDR is slower
  EXPECT_EQ(cost.bound, Bound::ddr);
  load.y.strides[3] = 2; // every second byte: one byte per cycle and lane
  cost = costOf(encode(load), base);
  EXPECT_EQ(cost.bound, Bound::local);
  EXPECT_EQ(cost.cycles, 200 + 224 * 224);
}

TEST(Latency, BroadcastIsReadOnce) {
  copy_command load;
  load.shape = {{1, 32, 1, 256}};
  load.x = ddr(32, 1, 256), load.y = local(0, 1, 256);
  load.x.strides[1] = 0;
  EXPECT_EQ(costOf(encode(load), base).read.asked, 256u);
}

TEST(Schedule, QueuesOverlapUnlessToldToWait) {
  std::vector<Cost> costs(3);
  copy_command copy;
  conv_command compute;
  std::vector<Descriptor> stream = {encode(copy), encode(compute), encode(copy)};
  stream[0].header.id = 1, stream[1].header.id = 1, stream[2].header.id = 2;
  costs[0].cycles = 100, costs[1].cycles = 50, costs[2].cycles = 30;
  auto spans = schedule(stream.data(), costs.data(), 3, base);
  EXPECT_EQ(spans[1].begin, 0);
  EXPECT_EQ(spans[1].end, 50);
  EXPECT_EQ(spans[2].begin, 100);
  EXPECT_EQ(spans[2].end, 130);
  stream[1].header.wait = 1, stream[2].header.wait = 1;
  spans = schedule(stream.data(), costs.data(), 3, base);
  EXPECT_EQ(spans[1].begin, 100);
  EXPECT_EQ(spans[2].begin, 150);
  EXPECT_EQ(spans[2].end, 180);
}

TEST(Schedule, DmaWaitsForAPortInUse) {
  std::vector<Descriptor> stream = {encode(copy_command()), encode(conv_command())};
  stream[0].header.id = stream[1].header.id = 1;
  std::vector<Cost> costs(2);
  costs[0].cycles = 100, costs[1].cycles = 60;
  costs[0].ports = {0, 50}, costs[1].ports = {60, 30}; // each uses half of bank 1: both fit
  auto spans = schedule(stream.data(), costs.data(), 2, base);
  EXPECT_EQ(spans[0].end, 100);
  costs[1].ports = {0, 45}; // compute uses three quarters; DMA gets a quarter but needs half: half speed while both run
  spans = schedule(stream.data(), costs.data(), 2, base);
  EXPECT_EQ(spans[1].end, 60);
  EXPECT_EQ(spans[0].end, 130);
  EXPECT_EQ(spans[0].stalled, 30);
  costs[1].ports = {0, 60}; // never free: DMA gets the least share
  EXPECT_EQ(schedule(stream.data(), costs.data(), 2, base)[0].end, 60 + 100 - 60 * 0.125);
}

TEST(Latency, DotsTakeAVectorAStep) {
  // 10 rows per lane of 320 sums: 80 vectors of 4, 48 steps. b spans two banks, so that its port is not the bottleneck.
  dot_command d{.shape = {{1, 320, 1, 320}}, .steps = 48};
  d.y = local(0, 1, 320, Type::f32), d.a = local(16384, 1, 48, Type::f32), d.b = local(65536, 48, 320, Type::f32);
  d.b.strides[1] = 0;
  Cost cost = costOf(encode(d), base);
  EXPECT_EQ(cost.cycles, 10 * 80 * 48 + 32 + 32);
  EXPECT_EQ(cost.bound, Bound::vector);
  // A sum waits for its previous addition.
  d.shape = {{1, 1, 1, 1}};
  EXPECT_EQ(costOf(encode(d), base).cycles, 4 * 48 + 32 + 32);
  // Elements that are not contiguous take one access each, all in two banks.
  d.shape = {{1, 32, 1, 320}}, d.steps = 1, d.b.strides[3] = 48;
  EXPECT_GT(costOf(encode(d), base).cycles, 150 + 64);
}

TEST(Latency, PicksTakeACycleAnElement) {
  pick_command p{.shape = {{1, 64, 4, 50}}, .columns = 9};
  p.y = local(0, 4, 50), p.x = local(16384, 4, 9), p.index = local(32768, 1, 50, Type::i16);
  EXPECT_EQ(costOf(encode(p), base).cycles, 2 * 4 * 50 + 32 + 32);
  EXPECT_EQ(costOf(encode(p), base).bound, Bound::vector);
}
