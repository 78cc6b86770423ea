// SPDX-License-Identifier: Apache-2.0
//===- Footprint.cpp - The bytes that a command accesses --------------------===//
#include "Footprint.h"

#include <algorithm>

namespace bmodel::npu {
namespace {

void sortAndJoin(std::vector<Interval> &intervals) {
  auto before = [](Interval a, Interval b) { return a.begin < b.begin; };
  if (!std::is_sorted(intervals.begin(), intervals.end(), before)) {
    std::sort(intervals.begin(), intervals.end(), before);
  }
  std::vector<Interval> joined;
  for (Interval each : intervals) {
    if (!joined.empty() && each.begin <= joined.back().end) {
      joined.back().end = std::max(joined.back().end, each.end);
    } else {
      joined.push_back(each);
    }
  }
  intervals = std::move(joined);
}

/// A run of bytes, repeated by nested loops.
struct Runs {
  struct Loop {
    uint64_t count, stride;
  };
  uint64_t begin, bytes;
  Loop loops[4] = {}; ///< ordered by decreasing stride
  size_t depths = 0;

  void repeat(uint64_t count, int64_t stride) {
    if (count == 1 || stride == 0) {
      return;
    }
    if (stride < 0) { // the same bytes, starting at the lowest
      begin -= (count - 1) * uint64_t(-stride), stride = -stride;
    }
    size_t at = depths++;
    for (; at > 0 && loops[at - 1].stride < uint64_t(stride); --at) {
      loops[at] = loops[at - 1];
    }
    loops[at] = {count, uint64_t(stride)};
  }

  /// Merges innermost loops whose iterations are contiguous into the run.
  void join() {
    while (depths > 0 && loops[depths - 1].stride == bytes) {
      bytes *= loops[--depths].count;
    }
  }

  void list(std::vector<Interval> &intervals, uint64_t at, size_t depth = 0) const {
    if (depth == depths) {
      intervals.push_back({at, at + bytes});
      return;
    }
    for (uint64_t i = 0; i < loops[depth].count; ++i) {
      list(intervals, at + i * loops[depth].stride, depth + 1);
    }
  }
};

/// Lists the bytes of |channels| channels of the operand within one lane; the first channel begins at |offset|.
void listChannels(const Operand &operand, uint64_t offset, uint64_t channels, std::vector<Interval> &intervals) {
  const Tensor &t = operand.tensor;
  const uint32_t *dims = operand.shape.dims;
  Runs runs{offset, sizeOf(t.type)};
  runs.repeat(dims[0], t.strides[0]), runs.repeat(channels, t.strides[1]);
  runs.repeat(dims[2], t.strides[2]), runs.repeat(dims[3], t.strides[3]);
  runs.join();
  runs.list(intervals, runs.begin);
}

/// Returns the smallest byte range within a lane that covers all intervals.
Interval inLaneOf(const std::vector<Interval> &intervals, uint64_t laneBytes) {
  Interval result{laneBytes, 0};
  for (Interval each : intervals) {
    uint64_t begin = each.begin % laneBytes, end = begin + (each.end - each.begin);
    if (end > laneBytes) { // extends into the next lane
      return {0, laneBytes};
    }
    result = {std::min(result.begin, begin), std::max(result.end, end)};
  }
  return result;
}

Footprint footprintOf(const Operand &operand, const Chip &chip) {
  const Tensor &t = operand.tensor;
  Footprint result{t.region, operand.written, operand.name, {}};
  uint32_t channels = operand.shape.dims[1];
  if (t.region != Region::local) {
    listChannels(operand, t.offset, channels, result.intervals);
    sortAndJoin(result.intervals);
    result.inLane = {result.intervals.front().begin, result.intervals.back().end};
    return result;
  }
  // Visit lanes in ascending order, so that dense tensors produce sorted intervals.
  uint32_t lanes = std::min(chip.lanes, channels);
  uint32_t inLowest = t.lane + lanes > chip.lanes ? chip.lanes - t.lane : 0;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    uint32_t first = (inLowest + lane) % lanes, place = t.lane + first;
    uint64_t offset = uint64_t(int64_t(t.offset) + int64_t(place % chip.lanes) * chip.laneBytes +
                               int64_t(place / chip.lanes) * t.strides[1]);
    listChannels(operand, offset, (channels - first + chip.lanes - 1) / chip.lanes, result.intervals);
  }
  sortAndJoin(result.intervals);
  result.inLane = inLaneOf(result.intervals, chip.laneBytes);
  return result;
}

} // namespace

std::vector<Footprint> footprintsOf(const Descriptor &command, const Chip &chip) {
  std::vector<Footprint> result;
  Operand operands[kMostOperands];
  for (size_t k = 0, number = operandsOf(command, operands); k < number; ++k) {
    result.push_back(footprintOf(operands[k], chip));
  }
  return result;
}

bool meet(const Footprint &a, const Footprint &b, uint64_t &at) {
  if (a.region != b.region || a.inLane.end <= b.inLane.begin || b.inLane.end <= a.inLane.begin ||
      a.intervals.back().end <= b.intervals.front().begin || b.intervals.back().end <= a.intervals.front().begin) {
    return false;
  }
  for (size_t i = 0, k = 0; i < a.intervals.size() && k < b.intervals.size();) {
    uint64_t begin = std::max(a.intervals[i].begin, b.intervals[k].begin),
             end = std::min(a.intervals[i].end, b.intervals[k].end);
    if (begin < end) {
      at = begin;
      return true;
    }
    a.intervals[i].end < b.intervals[k].end ? ++i : ++k;
  }
  return false;
}

bool conflict(const std::vector<Footprint> &a, const std::vector<Footprint> &b) {
  uint64_t at;
  return std::any_of(a.begin(), a.end(), [&](const Footprint &x) {
    return std::any_of(b.begin(), b.end(),
                       [&](const Footprint &y) { return (x.written || y.written) && meet(x, y, at); });
  });
}

} // namespace bmodel::npu
