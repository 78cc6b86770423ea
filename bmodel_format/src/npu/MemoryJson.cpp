// SPDX-License-Identifier: Apache-2.0
//===- MemoryJson.cpp - Memory use as JSON ----------------------------------===//
#include "bmodel/npu/memory_report.h"

#define JSON_NOEXCEPTION
#include "nlohmann/json.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace bmodel::npu {
namespace {

using Json = nlohmann::ordered_json;

/// Fraction of the total time below which a gap is invisible in a picture.
constexpr double kUnseen = 1e-3;
/// Maximum number of rectangles; more cannot be distinguished in a picture.
constexpr size_t kMost = 4000;

/// Merges consecutive uses of the same bytes by one layer if the gaps between them are invisible.
std::vector<Rectangle> asSeen(std::vector<Rectangle> all, const Descriptor *commands) {
  double end = 0;
  for (const Rectangle &each : all) {
    end = std::max(end, each.to);
  }
  auto key = [&](const Rectangle &each) {
    return std::tuple(commands[each.command].header.layer, each.begin, each.end);
  };
  std::sort(all.begin(), all.end(), [&](const Rectangle &a, const Rectangle &b) {
    return std::tuple(key(a), a.from, a.to) < std::tuple(key(b), b.from, b.to);
  });
  std::vector<Rectangle> result;
  for (const Rectangle &each : all) {
    if (!result.empty() && key(result.back()) == key(each) && each.from - result.back().to <= kUnseen * end) {
      result.back().to = std::max(result.back().to, each.to);
    } else {
      result.push_back(each);
    }
  }
  return result;
}

Json jsonOf(const MemoryUse &use, uint64_t bytes, uint32_t banks, const Descriptor *commands, const Chip &chip) {
  auto micro = [&](double cycles) { return std::round(chip.secondsOf(cycles) * 1e9) / 1000; };
  Json rows = Json::array();
  std::vector<Rectangle> all = asSeen(use.rectangles, commands);
  for (const Rectangle &each : all.size() > kMost ? joined(use, commands).rectangles : std::move(all)) {
    rows.push_back({commands[each.command].header.layer, micro(each.from), micro(each.to), each.begin, each.end});
  }
  return {{"bytes", bytes}, {"banks", banks}, {"peak_bytes", use.peak}, {"rectangles", std::move(rows)}};
}

} // namespace

std::string memoryJson(const MemoryReport &memory, const Descriptor *commands, const Chip &chip) {
  MemoryUse workspace = joined(memory.workspace, commands);
  return Json{{"local", jsonOf(memory.local, chip.laneBytes, chip.banks, commands, chip)},
              {"workspace", jsonOf(workspace, memory.workspace.top, 0, commands, chip)}}
             .dump() +
         "\n";
}

} // namespace bmodel::npu
