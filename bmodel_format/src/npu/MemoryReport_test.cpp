// SPDX-License-Identifier: Apache-2.0
//===- MemoryReport_test.cpp - Memory report against a byte-wise reference --===//
#include "bmodel/npu/memory_report.h"

#include "bmodel_format/test/RandomStream.h"
#include "bmodel_format/test/TestChip.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>

using namespace bmodel::npu;

namespace {

struct Timed {
  Timed(std::vector<Descriptor> given, const Chip &chip) : commands(std::move(given)) {
    for (const Descriptor &each : commands) {
      costs.push_back(costOf(each, chip));
    }
    spans = schedule(commands.data(), costs.data(), commands.size(), chip);
    report = memoryReportOf(commands.data(), spans.data(), commands.size(), chip);
  }
  std::vector<Descriptor> commands;
  std::vector<Cost> costs;
  std::vector<Span> spans;
  MemoryReport report;
};

/// Calls visit with every byte of an operand in the first of the lanes that have the most bytes.
template <typename Visit>
void eachByte(const Operand &operand, const Chip &chip, Visit visit) {
  const Tensor &t = operand.tensor;
  const uint32_t *dims = operand.shape.dims;
  uint32_t groups = (t.lane + dims[1] + chip.lanes - 1) / chip.lanes;
  for (uint32_t n = 0; n < dims[0]; ++n) {
    for (uint32_t c = 0; c < groups; ++c) {
      for (uint32_t h = 0; h < dims[2]; ++h) {
        for (uint32_t w = 0; w < dims[3] * sizeOf(t.type); ++w) {
          visit(t.offset + uint64_t(int64_t(n) * t.strides[0] + int64_t(c) * t.strides[1] + int64_t(h) * t.strides[2]) +
                w);
        }
      }
    }
  }
}

} // namespace

TEST(MemoryReport, EveryByteLivesFromItsWriterToItsLastReader) {
  Chip chip = chipNamed("npu-edge");
  for (unsigned seed = 0; seed < 5; ++seed) {
    RandomStream random(chip, seed);
    Timed timed(random.commands, chip);
    // For each byte, in stream order: the command that wrote it, and the time until which it is read.
    struct Life {
      size_t command;
      double to;
    };
    std::map<uint64_t, std::vector<Life>> bytes;
    for (size_t i = 0; i < timed.commands.size(); ++i) {
      Operand operands[kMostOperands];
      for (bool writes : {false, true}) {
        for (size_t k = 0, number = operandsOf(timed.commands[i], operands); k < number; ++k) {
          if (operands[k].written != writes || operands[k].tensor.region != Region::local) {
            continue;
          }
          eachByte(operands[k], chip, [&](uint64_t byte) {
            if (writes) {
              bytes[byte].push_back({i, timed.spans[i].end});
            } else {
              bytes[byte].back().to = std::max(bytes[byte].back().to, timed.spans[i].end);
            }
          });
        }
      }
    }
    uint64_t wanted = 0, got = 0;
    std::vector<std::pair<double, int>> changes;
    for (auto &[byte, lives] : bytes) {
      wanted += lives.size();
      for (const Life &life : lives) {
        changes.emplace_back(timed.spans[life.command].begin, 1);
        changes.emplace_back(life.to, -1);
      }
    }
    for (const Rectangle &each : timed.report.local.rectangles) {
      EXPECT_EQ(each.from, timed.spans[each.command].begin);
      for (uint64_t byte = each.begin; byte < each.end; ++byte, ++got) {
        const auto &lives = bytes[byte];
        auto life = std::find_if(lives.begin(), lives.end(), [&](const Life &l) { return l.command == each.command; });
        ASSERT_NE(life, lives.end());
        EXPECT_EQ(each.to, life->to);
      }
    }
    EXPECT_EQ(got, wanted);
    std::sort(changes.begin(), changes.end());
    int live = 0, most = 0;
    for (const auto &[time, change] : changes) {
      most = std::max(most, live += change);
    }
    EXPECT_EQ(timed.report.local.peak, uint64_t(most));
    EXPECT_EQ(timed.report.local.top, bytes.rbegin()->first + 1);
    EXPECT_EQ(timed.report.workspace.peak, 0u);
  }
}

TEST(MemoryReport, TheLowerBoundCountsEachByteOnce) {
  Chip chip = chipNamed("npu-edge");
  auto place = [](Region region, uint64_t offset) {
    return Tensor{.offset = offset, .strides = {0, 64, 64, 1}, .region = region, .type = Type::i8};
  };
  Region output = Region(int(Region::io) + 1);
  Shape shape{{1, 8, 1, 64}};
  std::vector<Descriptor> commands;
  // Loads the weights twice, overlapping by half; moves an input and an output, and a value to and from the workspace.
  const std::pair<Tensor, Tensor> moves[] = {{place(Region::local, 0), place(Region::constants, 0)},
                                             {place(Region::local, 64), place(Region::constants, 256)},
                                             {place(Region::local, 128), place(Region::io, 0)},
                                             {place(Region::workspace, 0), place(Region::local, 0)},
                                             {place(Region::local, 192), place(Region::workspace, 0)},
                                             {place(output, 0), place(Region::local, 192)}};
  for (const auto &[y, x] : moves) {
    commands.push_back(encode(copy_command{.y = y, .x = x, .shape = shape}));
  }
  assignWaits(commands, chip);
  Timed timed(commands, chip);
  EXPECT_EQ(timed.report.ddrLowerBound, 768u + 512 + 512);
  EXPECT_EQ(timed.report.workspace.peak, 512u);
  ASSERT_EQ(timed.report.workspace.rectangles.size(), 1u);
  EXPECT_EQ(timed.report.workspace.rectangles[0].to, timed.spans[4].end);
  commands[1].header.layer = 1; // weights of two layers that happen to be partly equal
  EXPECT_EQ(Timed(commands, chip).report.ddrLowerBound, 1024u + 512 + 512);
}

TEST(MemoryReport, LayersNeedEachByteOfOthersOnce) {
  Chip chip = chipNamed("npu-edge");
  std::vector<Descriptor> commands;
  auto copy = [&](uint32_t layer, Region to, uint64_t toOffset, Region from, uint64_t fromOffset) {
    auto dense = [](Region region, uint64_t offset) {
      return Tensor{.offset = offset, .strides = {0, 64, 64, 1}, .region = region, .type = Type::i8};
    };
    commands.push_back(
        encode(copy_command{.y = dense(to, toOffset), .x = dense(from, fromOffset), .shape = {{1, 8, 1, 64}}}));
    commands.back().header.layer = layer;
  };
  Region output = Region(int(Region::io) + 1);
  copy(0, Region::local, 0, Region::constants, 0);
  copy(0, Region::local, 64, Region::constants, 256); // half of it again
  copy(0, Region::workspace, 0, Region::local, 0);    // for its own use
  copy(0, Region::local, 128, Region::workspace, 0);  // does not count
  copy(0, Region::workspace, 512, Region::local, 0);  // for layer 1, which reads it twice
  copy(1, Region::local, 192, Region::workspace, 512);
  copy(1, Region::local, 256, Region::workspace, 512);
  copy(1, output, 0, Region::local, 192);
  copy(1, output, 0, Region::local, 256); // the same bytes again
  assignWaits(commands, chip);
  Timed timed(commands, chip);
  EXPECT_EQ(timed.report.leastDdrBytes, (std::map<uint32_t, uint64_t>{{0, 768 + 512}, {1, 512 + 512}}));
  auto leastOf = [&](const std::vector<std::string> &names) {
    return memoryReportOf(timed.commands.data(), timed.spans.data(), timed.commands.size(), chip, names).leastDdrBytes;
  };
  std::map<uint32_t, uint64_t> parted = {{0, 768 + 512}, {1, 512 + 512}}, whole = {{0, 768}, {1, 512}};
  EXPECT_EQ(leastOf({"a", "b"}), parted);
  EXPECT_EQ(leastOf({"a", "a"}), whole) << "two parts of one op";
  EXPECT_EQ(leastOf({"", ""}), parted) << "layers without a name are distinct ops";
}

TEST(MemoryReport, LinksAreWhoReadsWhoseBytes) {
  Chip chip = chipNamed("npu-edge"), asOneLane = chip;
  asOneLane.lanes = 1; // the layout of bytes outside the lanes
  size_t links = 0;
  for (unsigned seed = 0; seed < 5; ++seed) {
    std::vector<Descriptor> commands = RandomStream(chip, seed).commands;
    for (size_t i = 0; i < commands.size(); ++i) {
      commands[i].header.layer = uint32_t(i / 3);
    }
    Timed timed(commands, chip);
    std::map<std::pair<Region, uint64_t>, uint32_t> writers; // layer that wrote each byte
    std::map<uint32_t, std::set<uint32_t>> wanted;
    auto touch = [&](const Operand &operand, uint32_t layer) {
      Region region = operand.tensor.region;
      eachByte(operand, region == Region::local ? chip : asOneLane, [&](uint64_t byte) {
        auto writer = writers.find({region, byte});
        if (operand.written) {
          writers[{region, byte}] = layer;
        } else if (writer != writers.end() && writer->second != layer) {
          wanted[layer].insert(writer->second);
        }
      });
    };
    for (const Descriptor &command : commands) {
      Operand operands[kMostOperands];
      for (bool writes : {false, true}) {
        for (size_t k = 0, number = operandsOf(command, operands); k < number; ++k) {
          bool isKept = operands[k].tensor.region == Region::local || operands[k].tensor.region == Region::workspace;
          if (operands[k].written == writes && isKept) {
            touch(operands[k], command.header.layer);
          }
        }
      }
    }
    for (uint32_t layer = 0; layer <= commands.size() / 3; ++layer) {
      EXPECT_EQ(timed.report.links[layer].from, wanted[layer]) << "layer " << layer << ", seed " << seed;
      links += wanted[layer].size();
    }
  }
  EXPECT_GT(links, 20u);
}

TEST(MemoryReport, JoinedTilesAreTensors) {
  std::vector<Descriptor> commands(3);
  commands[2].header.layer = 1;
  MemoryUse use{{{64, 128, 5, 9, 1}, {0, 64, 1, 7, 0}, {128, 192, 2, 3, 2}, {256, 300, 2, 4, 0}}, 7, 300};
  MemoryUse got = joined(use, commands.data());
  ASSERT_EQ(got.rectangles.size(), 3u);
  const Rectangle &first = got.rectangles[0];
  EXPECT_EQ(std::tuple(first.begin, first.end, first.from, first.to), std::tuple(0u, 128u, 1.0, 9.0));
  EXPECT_EQ(got.rectangles[1].begin, 256u);
  EXPECT_EQ(got.rectangles[2].begin, 128u);
  EXPECT_EQ(got.peak, 7u);
}

TEST(MemoryReport, PicturesHaveARectangleForEach) {
  Chip chip = chipNamed("npu-edge");
  RandomStream random(chip, 3);
  Timed timed(random.commands, chip);
  std::string text = memorySvg(timed.report.local, "a <lane>", chip.laneBytes, chip.banks, timed.commands.data(), chip,
                               {"conv & \"relu\""});
  size_t count = 0;
  for (size_t at = text.find("<title>"); at != std::string::npos; at = text.find("<title>", at + 1)) {
    ++count;
  }
  EXPECT_EQ(count, timed.report.local.rectangles.size());
  EXPECT_NE(text.find("conv &amp; &quot;relu&quot; (command 0, copy)"), std::string::npos);
  EXPECT_NE(text.find("a &lt;lane&gt;: "), std::string::npos);
  EXPECT_EQ(text.rfind("</svg>\n"), text.size() - 7);
}
