// SPDX-License-Identifier: Apache-2.0
//===- Footprint.cpp - The bytes that a command touches ---------------------===//
#include "Footprint.h"

#include <algorithm>

namespace bmodel::npu {
namespace {

/// Adds bytes, joined with the last ones where they follow on them.
void add(Footprint &footprint, uint64_t begin, uint64_t end) {
  if (!footprint.intervals.empty() && footprint.intervals.back().end == begin) {
    footprint.intervals.back().end = end;
  } else {
    footprint.intervals.push_back({begin, end});
  }
}

void sortAndJoin(std::vector<Interval> &intervals) {
  std::sort(intervals.begin(), intervals.end(), [](Interval a, Interval b) { return a.begin < b.begin; });
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

Footprint footprintOf(const Operand &operand, const Chip &chip) {
  const Tensor &t = operand.tensor;
  Footprint made{t.region, operand.written, operand.name, {}};
  bool isLocal = t.region == Region::local;
  uint64_t element = sizeOf(t.type);
  const uint32_t *dims = operand.shape.dims;
  for (uint32_t c = 0; c < dims[1]; ++c) {
    uint32_t place = t.lane + c;
    int64_t channel = isLocal
                          ? int64_t(place % chip.lanes) * chip.laneBytes + int64_t(place / chip.lanes) * t.strides[1]
                          : int64_t(c) * t.strides[1];
    for (uint32_t n = 0; n < dims[0]; ++n) {
      for (uint32_t h = 0; h < dims[2]; ++h) {
        uint64_t row = uint64_t(int64_t(t.offset) + channel + int64_t(n) * t.strides[0] + int64_t(h) * t.strides[2]);
        if (t.strides[3] == int64_t(element) || dims[3] == 1) {
          add(made, row, row + dims[3] * element);
          continue;
        }
        for (uint32_t w = 0; w < dims[3]; ++w) {
          uint64_t at = uint64_t(int64_t(row) + int64_t(w) * t.strides[3]);
          add(made, at, at + element);
        }
      }
    }
  }
  sortAndJoin(made.intervals);
  return made;
}

} // namespace

std::vector<Footprint> footprintsOf(const Descriptor &command, const Chip &chip) {
  std::vector<Footprint> made;
  Operand operands[kMostOperands];
  for (size_t k = 0, number = operandsOf(command, operands); k < number; ++k) {
    made.push_back(footprintOf(operands[k], chip));
  }
  return made;
}

bool meet(const Footprint &a, const Footprint &b, uint64_t &at) {
  if (a.region != b.region || a.intervals.back().end <= b.intervals.front().begin ||
      b.intervals.back().end <= a.intervals.front().begin) {
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
