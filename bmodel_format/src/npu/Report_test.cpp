// SPDX-License-Identifier: Apache-2.0
//===- Report_test.cpp - Sums and texts of reports, computed by hand --------===//
#include "bmodel/npu/report.h"

#include "bmodel_format/test/TestChip.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace bmodel::npu;

namespace {

const Chip edge = chipNamed("npu-edge"); // 1 GHz

Tensor tile(Region region) { return {.strides = {0, 64, 64, 1}, .region = region, .type = Type::i8}; }

/// A stream that loads weights and an input, keeps one result in DDR for a while, and stores another as output.
struct Example {
  Example() {
    Region regions[][2] = {{Region::local, Region::constants},
                           {Region::local, Region::io},
                           {Region::workspace, Region::local},
                           {Region(int(Region::io) + 1), Region::local}};
    for (auto &each : regions) {
      copy_command c;
      c.y = tile(each[0]), c.x = tile(each[1]), c.shape = {{1, 8, 1, 64}};
      commands.push_back(encode(c));
    }
    pool_command p;
    p.y = tile(Region::local), p.x = tile(Region::local), p.x.offset = 1024;
    p.shape = {{1, 8, 1, 64}}, p.rows = 1, p.columns = 64;
    commands.push_back(encode(p));
    uint32_t layers[] = {0, 0, 0, 1, 1}, ids[] = {1, 2, 3, 4, 1};
    for (size_t i = 0; i < commands.size(); ++i) {
      commands[i].header.layer = layers[i], commands[i].header.id = ids[i];
      costs.push_back(costOf(commands[i], edge));
    }
    spans = schedule(commands.data(), costs.data(), commands.size(), edge);
  }
  std::vector<Descriptor> commands;
  std::vector<Cost> costs;
  std::vector<Span> spans;
};

} // namespace

TEST(Report, CountsByQueueLayerAndPurpose) {
  Example e;
  Report report = reportOf(e.commands.data(), e.costs.data(), e.spans.data(), e.commands.size(), 1);
  double copy = e.costs[0].cycles, pool = e.costs[4].cycles;
  EXPECT_EQ(copy, 200 + 512 / (4 * 0.88));
  EXPECT_NEAR(report.all.busy[0], 4 * copy + report.all.stalled, 1e-9);
  EXPECT_EQ(report.all.busy[1], pool);
  EXPECT_EQ(report.cycles, e.spans[3].end);
  EXPECT_NEAR(report.waited[0], 0, 1e-9);
  EXPECT_NEAR(report.waited[1], report.cycles - pool, 1e-9);
  EXPECT_EQ(report.all.commands[0], 4u);
  for (const Traffic &each : report.all.traffic) {
    EXPECT_EQ(each.asked, 512u);
    EXPECT_EQ(each.moved, 512u);
  }
  EXPECT_EQ(report.layers.at(0).commands[0], 3u);
  EXPECT_EQ(report.layers.at(1).commands[1], 1u);
  EXPECT_EQ(report.layers.at(1).traffic[int(Purpose::output)].asked, 512u);
  EXPECT_EQ(report.layers.at(1).traffic[int(Purpose::weights)].asked, 0u);
}

TEST(Report, EveryMomentIsToldOnce) {
  Example e;
  Report report = reportOf(e.commands.data(), e.costs.data(), e.spans.data(), e.commands.size(), 1);
  EXPECT_NEAR(report.all.cycles(), report.cycles, 1e-6);
  // The pool runs beside the first copy and comes first; the latency bounds such small copies.
  EXPECT_EQ(report.layers.at(1).begin, 0);
  EXPECT_EQ(report.layers.at(1).end, report.cycles);
  double last = e.spans[3].end - e.spans[3].begin;
  EXPECT_NEAR(report.layers.at(1).cycles(), e.costs[4].cycles + last, 1e-6);
  EXPECT_NEAR(report.layers.at(0).cycles(), report.cycles - e.costs[4].cycles - last, 1e-6);
  EXPECT_STREQ(nameOfShare(report.layers.at(0).largestShare()), "latency");
  // While a command waits for a command of the other queue, only that command runs.
  e.spans[4] = {report.cycles + 100, report.cycles + 150, 0};
  Report later = reportOf(e.commands.data(), e.costs.data(), e.spans.data(), e.commands.size(), 1);
  EXPECT_NEAR(later.all.shares[kIdle], 100, 1e-6);
  EXPECT_NEAR(later.all.cycles(), later.cycles, 1e-6);
}

TEST(Report, RooflinesAreWorkedOutByHand) {
  conv_command conv;
  conv.shape = {{1, 16, 8, 8}}, conv.window.kernel[0] = conv.window.kernel[1] = 3, conv.channels = 32;
  depthwise_command depthwise;
  depthwise.shape = {{1, 32, 8, 8}}, depthwise.window.kernel[0] = 3;
  map_command map;
  map.shape = {{1, 8, 1, 64}}, map.plain = 3, map.slow = 1;
  std::vector<Descriptor> commands = {encode(conv), encode(depthwise), encode(map)};
  double macs = double(edge.lanes) * edge.reduction * edge.pixels;
  double wanted = 16.0 * 64 * 9 * 32 / macs + 32.0 * 64 * 3 * edge.depthwiseDivisor / macs +
                  8 * 64 * (3.0 + edge.functionCycles) / (edge.lanes * edge.vectorBytes / 4);
  MemoryReport memory;
  memory.ddrLowerBound = 4000;
  Roofline got = rooflineOf(commands.data(), commands.size(), memory, edge);
  EXPECT_NEAR(got.compute, wanted, 1e-9);
  EXPECT_NEAR(got.dense, 16.0 * 64 * 9 * 32 / macs, 1e-9);
  EXPECT_NEAR(got.depthwise, 32.0 * 64 * 3 * edge.depthwiseDivisor / macs, 1e-9);
  EXPECT_NEAR(got.vector, wanted - got.dense - got.depthwise, 1e-9);
  EXPECT_EQ(got.ddr, 4000 * edge.clockGhz / edge.ddrGbps);
  EXPECT_NEAR(got.matrixOfLayer.at(0), got.dense + got.depthwise, 1e-9) << "all three are of layer 0";
  EXPECT_EQ(got.cycles(), std::max(wanted, got.ddr));
  conv.x.type = Type::i16;
  commands[0] = encode(conv);
  Roofline wide = rooflineOf(commands.data(), 1, memory, edge);
  EXPECT_NEAR(wide.compute, 16.0 * 64 * 9 * 32 / macs * edge.int16Divisor, 1e-9);
  pool_command pool;
  pool.shape = {{1, 32, 8, 8}}, pool.window.kernel[0] = 3;
  commands[0] = encode(pool);
  Roofline slides = rooflineOf(commands.data(), 1, memory, edge);
  EXPECT_GT(slides.depthwise, 0);
  EXPECT_EQ(slides.depthwise, slides.compute);
}

TEST(Report, CsvHasALineALayer) {
  Example e;
  Report report = reportOf(e.commands.data(), e.costs.data(), e.spans.data(), e.commands.size(), 1);
  std::string text = layersCsv(report, edge, {"stem, \"first\""});
  EXPECT_EQ(text.rfind("layer,name,microseconds,share,bound,", 0), 0u);
  EXPECT_NE(text.find("\n0,\"stem, \"\"first\"\"\","), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

TEST(Report, JsonNamesLayersAndUnits) {
  Example e;
  Report report = reportOf(e.commands.data(), e.costs.data(), e.spans.data(), e.commands.size(), 1);
  std::string text = reportJson(report, edge, {"stem"});
  for (const char *part : {"\"chip\": \"npu-edge\"", "\"name\": \"stem\"", "\"name\": \"\"", "\"idle_cycles\": 0.0",
                           "\"stalled_cycles\": 0.0", "\"mac_utilisation\": 0.0", "\"microseconds\": "}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
}

TEST(Report, TracesHaveOneEventACommand) {
  Example e;
  std::string text = chromeTrace(e.commands.data(), e.costs.data(), e.spans.data(), e.commands.size(), edge, {"stem"});
  text.erase(text.find("\"name\":\"layers 1\""));
  size_t events = 0;
  for (size_t at = text.find("\"ph\":\"X\""); at != std::string::npos; at = text.find("\"ph\":\"X\"", at + 1)) {
    ++events;
  }
  EXPECT_EQ(events, e.commands.size());
  // The second load starts 345.454... cycles of 1 ns after the first and takes as long: it ends at 0.691.
  EXPECT_NE(text.find("\"name\":\"copy stem\",\"cat\":\"latency\",\"ph\":\"X\",\"ts\":0.345,\"dur\":0.346"),
            std::string::npos)
      << text;
}

double numberBehind(const std::string &text, const std::string &key) {
  size_t at = text.find(key);
  return at == std::string::npos ? -1 : std::stod(text.substr(at + key.size()));
}

TEST(Report, TracesOfCommandsInARowDoNotOverlap) {
  Example e;
  // Each command begins when the previous one ends, at times that three decimals of a microsecond cannot represent.
  double at = 0;
  for (Span &span : e.spans) {
    span.begin = at;
    span.end = at += 1.6;
  }
  std::string text = chromeTrace(e.commands.data(), e.costs.data(), e.spans.data(), e.commands.size(), edge, {"stem"});
  double end = 0;
  size_t events = 0;
  for (size_t from = text.find("\"name\":\""); from != std::string::npos; from = text.find("\"name\":\"", from + 1)) {
    std::string event = text.substr(from, text.find("}}", from) - from);
    if (event.find("\"cat\":\"layer\"") != std::string::npos || event.find("\"ts\":") == std::string::npos ||
        event.find("\"dur\":") == std::string::npos) {
      continue;
    }
    EXPECT_GE(numberBehind(event, "\"ts\":"), end - 1e-9) << text;
    end = numberBehind(event, "\"ts\":") + numberBehind(event, "\"dur\":");
    ++events;
  }
  EXPECT_EQ(events, e.commands.size());
}
