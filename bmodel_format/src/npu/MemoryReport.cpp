// SPDX-License-Identifier: Apache-2.0
//===- MemoryReport.cpp - Lifetimes of bytes during a stream ----------------===//
#include "bmodel/npu/memory_report.h"

#include "Footprint.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace bmodel::npu {
namespace {

/// Returns the byte ranges of an operand; in local memory, those of the lane with the most bytes.
std::vector<Interval> bytesOf(const Operand &operand, const Chip &chip) {
  const Tensor &t = operand.tensor;
  uint32_t dims[4];
  std::copy(std::begin(operand.shape.dims), std::end(operand.shape.dims), dims);
  if (t.region == Region::local) {
    dims[1] = (t.lane + dims[1] + chip.lanes - 1) / chip.lanes;
  }
  // Process dims from the innermost outwards; contiguous elements form one run.
  int order[] = {0, 1, 2, 3};
  std::sort(std::begin(order), std::end(order),
            [&](int a, int b) { return std::abs(t.strides[a]) < std::abs(t.strides[b]); });
  std::vector<Interval> runs = {{t.offset, t.offset + sizeOf(t.type)}};
  for (int axis : order) {
    int64_t stride = t.strides[axis];
    if (dims[axis] == 1 || stride == 0) {
      continue;
    }
    if (runs.size() == 1 && stride > 0 && uint64_t(stride) <= runs[0].end - runs[0].begin) {
      runs[0].end += uint64_t(stride) * (dims[axis] - 1);
      continue;
    }
    size_t once = runs.size();
    for (uint32_t i = 1; i < dims[axis]; ++i) {
      for (size_t k = 0; k < once; ++k) {
        uint64_t shift = uint64_t(stride * int64_t(i));
        runs.push_back({runs[k].begin + shift, runs[k].end + shift});
      }
    }
  }
  return runs;
}

/// The live rectangles of a memory by their bytes: sorted and disjoint.
class Living {
public:
  /// Extends the lifetime of every rectangle in `bytes` to `end` and calls visit(rectangle, the bytes of it that are
  /// read).
  template <typename Visit>
  void read(Interval bytes, double end, Visit visit) {
    eachIn(bytes, [&](auto at) {
      Rectangle &each = at->second;
      each.to = std::max(each.to, end);
      visit(each, Interval{std::max(each.begin, bytes.begin), std::min(each.end, bytes.end)});
      return std::next(at);
    });
  }

  void write(Interval bytes, const Span &span, size_t command) {
    eachIn(bytes, [&](auto at) {
      // The parts on both sides of the overwritten bytes stay alive.
      Rectangle old = at->second;
      at = now.erase(at);
      if (old.begin < bytes.begin) {
        now[old.begin] = part(old, old.begin, bytes.begin);
      }
      if (bytes.end < old.end) {
        at = now.insert_or_assign(bytes.end, part(old, bytes.end, old.end)).first;
      }
      ended.push_back(part(old, std::max(old.begin, bytes.begin), std::min(old.end, bytes.end)));
      return at;
    });
    now[bytes.begin] = {bytes.begin, bytes.end, span.begin, span.end, command};
  }

  MemoryUse finish() {
    for (const auto &[begin, rectangle] : now) {
      ended.push_back(rectangle);
    }
    MemoryUse use;
    std::vector<std::pair<double, int64_t>> changes;
    for (const Rectangle &each : ended) {
      use.top = std::max(use.top, each.end);
      changes.emplace_back(each.from, int64_t(each.end - each.begin));
      changes.emplace_back(each.to, -int64_t(each.end - each.begin));
    }
    // At equal times, ends sort before beginnings.
    std::sort(changes.begin(), changes.end());
    int64_t live = 0;
    for (const auto &[time, bytes] : changes) {
      live += bytes;
      use.peak = std::max(use.peak, uint64_t(std::max<int64_t>(live, 0)));
    }
    use.rectangles = std::move(ended);
    return use;
  }

private:
  static Rectangle part(Rectangle of, uint64_t begin, uint64_t end) {
    of.begin = begin, of.end = end;
    return of;
  }

  /// Calls visit(iterator) for each rectangle that overlaps `bytes`; visit returns the iterator to continue with.
  template <typename Visit>
  void eachIn(Interval bytes, Visit visit) {
    auto at = now.upper_bound(bytes.begin);
    if (at != now.begin() && std::prev(at)->second.end > bytes.begin) {
      --at;
    }
    while (at != now.end() && at->first < bytes.end) {
      at = visit(at);
    }
  }

  std::map<uint64_t, Rectangle> now; ///< by first byte
  std::vector<Rectangle> ended;
};

/// A set of bytes, for counting them.
class Seen {
public:
  void add(Interval bytes) { all.push_back(bytes); }
  uint64_t count() {
    std::sort(all.begin(), all.end(), [](Interval a, Interval b) { return a.begin < b.begin; });
    uint64_t bytes = 0, behind = 0;
    for (Interval each : all) {
      bytes += std::max(each.end, behind) - std::max(each.begin, behind);
      behind = std::max(behind, each.end);
    }
    return bytes;
  }

private:
  std::vector<Interval> all;
};

/// Computes the DDR bytes that each layer must move at least.
class LeastTraffic {
public:
  explicit LeastTraffic(const std::vector<std::string> &names) : names(names) {}

  /// Records an operand outside the chip of a DMA command of |layer|, except for reads of the workspace.
  void touch(uint32_t layer, Region region, bool writes, Interval bytes) { seen[{layer, region, writes}].add(bytes); }

  /// Records a read of a workspace value. Bytes that the layer itself has written need not have left the chip.
  void readValue(uint32_t layer, const Descriptor &writer, Rectangle &value, Interval bytes) {
    if (!isSame(writer.header.layer, layer)) {
      value.isReadByOthers = true;
      touch(layer, Region::workspace, false, bytes);
    }
  }

  /// Adds the writes of values that other layers read.
  void addValues(const std::vector<Rectangle> &values, const Descriptor *commands) {
    for (const Rectangle &value : values) {
      if (value.isReadByOthers) {
        touch(commands[value.command].header.layer, Region::workspace, true, {value.begin, value.end});
      }
    }
  }

  std::map<uint32_t, uint64_t> count() {
    std::map<uint32_t, uint64_t> bytes;
    for (auto &[where, each] : seen) {
      bytes[std::get<0>(where)] += each.count();
    }
    return bytes;
  }

private:
  bool isSame(uint32_t a, uint32_t b) const {
    bool named = a < names.size() && b < names.size() && !names[a].empty();
    return a == b || (named && names[a] == names[b]);
  }

  const std::vector<std::string> &names;
  std::map<std::tuple<uint32_t, Region, bool>, Seen> seen;
};

} // namespace

MemoryUse joined(MemoryUse use, const Descriptor *commands) {
  auto layerOf = [&](const Rectangle &each) { return commands[each.command].header.layer; };
  std::vector<Rectangle> all = std::move(use.rectangles);
  std::sort(all.begin(), all.end(), [&](const Rectangle &a, const Rectangle &b) {
    return std::tuple(layerOf(a), a.begin, a.from) < std::tuple(layerOf(b), b.begin, b.from);
  });
  use.rectangles.clear();
  for (const Rectangle &each : all) {
    Rectangle *last = use.rectangles.empty() ? nullptr : &use.rectangles.back();
    if (!last || layerOf(*last) != layerOf(each) || last->end < each.begin) {
      use.rectangles.push_back(each);
      continue;
    }
    last->end = std::max(last->end, each.end);
    last->from = std::min(last->from, each.from), last->to = std::max(last->to, each.to);
  }
  return use;
}

MemoryReport memoryReportOf(const Descriptor *commands, const Span *spans, size_t count, const Chip &chip,
                            const std::vector<std::string> &names) {
  Living local, workspace;
  LeastTraffic least(names);
  std::map<std::pair<Region, uint32_t>, Seen> once; // constants by layer
  std::map<uint32_t, LayerLinks> links;
  auto touch = [&](size_t i, const Operand &operand, Interval bytes) {
    Region region = operand.tensor.region;
    uint32_t layer = commands[i].header.layer;
    if (region != Region::local && region != Region::workspace) {
      once[{region, region == Region::constants ? layer : 0}].add(bytes);
      least.touch(layer, region, operand.written, bytes);
      if (region >= Region::io) {
        LayerLinks &mine = links[layer];
        (operand.written ? mine.buffersWritten : mine.buffersRead).insert(uint32_t(region) - uint32_t(Region::io));
      }
      return;
    }
    Living &memory = region == Region::local ? local : workspace;
    if (operand.written) {
      memory.write(bytes, spans[i], i);
      return;
    }
    memory.read(bytes, spans[i].end, [&](Rectangle &value, Interval part) {
      if (uint32_t writer = commands[value.command].header.layer; writer != layer) {
        links[layer].from.insert(writer);
      }
      if (region == Region::workspace) {
        least.readValue(layer, commands[value.command], value, part);
      }
    });
  };
  for (size_t i = 0; i < count; ++i) {
    Operand operands[kMostOperands];
    size_t number = operandsOf(commands[i], operands);
    bool isDma = findCommand(commands[i].header.opcode)->queue == Queue::dma;
    for (bool writes : {false, true}) {
      for (size_t k = 0; k < number; ++k) {
        if (operands[k].written != writes || (operands[k].tensor.region == Region::constants && !isDma)) {
          continue;
        }
        for (Interval bytes : bytesOf(operands[k], chip)) {
          touch(i, operands[k], bytes);
        }
      }
    }
  }
  MemoryReport report;
  report.local = local.finish(), report.workspace = workspace.finish();
  for (auto &[where, seen] : once) {
    report.ddrLowerBound += seen.count();
  }
  least.addValues(report.workspace.rectangles, commands);
  report.leastDdrBytes = least.count();
  report.links = std::move(links);
  return report;
}

} // namespace bmodel::npu
