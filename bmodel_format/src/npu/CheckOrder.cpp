// SPDX-License-Identifier: Apache-2.0
//===- CheckOrder.cpp - Checks for races and unwritten bytes ----------------===//
#include "bmodel/npu/check.h"

#include "Footprint.h"

#include <algorithm>
#include <map>

namespace bmodel::npu {
namespace {

/// The set of written bytes of a region.
class Written {
public:
  void add(const Footprint &footprint) {
    for (Interval each : footprint.intervals) {
      Interval grown = each;
      auto next = known.upper_bound(each.begin);
      if (next != known.begin() && std::prev(next)->second >= each.begin) {
        next = std::prev(next);
        grown.begin = next->first;
      }
      while (next != known.end() && next->first <= grown.end) {
        grown.end = std::max(grown.end, next->second);
        next = known.erase(next);
      }
      known[grown.begin] = grown.end;
    }
  }
  /// Returns true if a byte of the footprint has not been written, and sets `at` to the first such byte.
  bool lacks(const Footprint &footprint, uint64_t &at) const {
    for (Interval each : footprint.intervals) {
      auto next = known.upper_bound(each.begin);
      uint64_t until = next == known.begin() ? each.begin : std::prev(next)->second;
      if (until < each.end) {
        at = std::max(until, each.begin);
        return true;
      }
    }
    return false;
  }

private:
  std::map<uint64_t, uint64_t> known; ///< begin -> end; intervals do not touch
};

class OrderCheck {
public:
  OrderCheck(const Descriptor *commands, size_t count, const Chip &chip, const RegionSizes &sizes)
      : commands(commands), count(count), chip(chip), sizes(sizes) {}

  bool run(Status &status) {
    for (size_t i = 0; i < count; ++i) {
      if (!visit(i, status)) {
        return false;
      }
    }
    return checkOutputs(status);
  }

private:
  struct Visited {
    size_t index;
    uint32_t id;
    std::vector<Footprint> operands;
  };

  bool visit(size_t i, Status &status) {
    const Header &header = commands[i].header;
    int queue = int(findCommand(header.opcode)->queue);
    known[queue] = std::max(known[queue], header.wait);
    Visited now{i, header.id, footprintsOf(commands[i], chip)};
    // Commands of the other queue that this queue has waited for have finished, so they cannot race any more.
    std::erase_if(recent[1 - queue], [&](const Visited &other) { return other.id <= known[queue]; });
    for (const Visited &other : recent[1 - queue]) {
      if (!checkPair(now, other, status)) {
        return false;
      }
    }
    if (!checkRead(now, status)) {
      return false;
    }
    recent[queue].push_back(std::move(now));
    return true;
  }

  bool checkPair(const Visited &now, const Visited &other, Status &status) const {
    for (const Footprint &a : now.operands) {
      for (const Footprint &b : other.operands) {
        uint64_t at;
        if ((a.written || b.written) && meet(a, b, at)) {
          status.commands[1] = int64_t(now.index);
          return BMODEL_FAIL_AT(
              status, other.index, Corrupt,
              "command %zu (%s) and command %zu (%s) may run at the same time; both touch byte %s, one "
              "writes it: operands %s and %s",
              other.index, nameOf(other.index), now.index, nameOf(now.index), place(a.region, at).c_str(), b.name,
              a.name);
        }
      }
    }
    return true;
  }

  bool checkRead(const Visited &now, Status &status) {
    for (const Footprint &each : now.operands) {
      uint64_t at;
      if (!each.written && !isGiven(each.region) && written[each.region].lacks(each, at)) {
        return BMODEL_FAIL_AT(status, now.index, Corrupt,
                              "command %zu (%s) reads byte %s, which no command has written: operand %s", now.index,
                              nameOf(now.index), place(each.region, at).c_str(), each.name);
      }
    }
    for (const Footprint &each : now.operands) {
      if (each.written) {
        written[each.region].add(each);
      }
    }
    return true;
  }

  bool checkOutputs(Status &status) {
    for (size_t k = sizes.inputs; k < sizes.io.size(); ++k) {
      Region region = Region(size_t(Region::io) + k);
      Footprint whole{region, false, "", {{0, sizes.io[k]}}};
      uint64_t at;
      if (written[region].lacks(whole, at)) {
        return BMODEL_FAIL(status, Corrupt, "byte %s, an output, is never written", place(region, at).c_str());
      }
    }
    return true;
  }

  bool isGiven(Region region) const {
    return region == Region::constants || (region >= Region::io && size_t(region) - size_t(Region::io) < sizes.inputs);
  }
  const char *nameOf(size_t index) const { return findCommand(commands[index].header.opcode)->name; }
  std::string place(Region region, uint64_t at) const {
    if (region == Region::local) {
      return std::to_string(at % chip.laneBytes) + " of lane " + std::to_string(at / chip.laneBytes);
    }
    return std::to_string(at) + (region == Region::constants ? " of the constants"
                                 : region == Region::workspace
                                     ? " of the workspace"
                                     : " of buffer " + std::to_string(int(region) - int(Region::io)));
  }

  const Descriptor *commands;
  size_t count;
  const Chip &chip;
  const RegionSizes &sizes;
  std::vector<Visited> recent[2]; ///< by queue: commands that may still run at the same time as later commands of the
                                  ///< other queue
  uint32_t known[2] = {0, 0};     ///< by queue: id of the last command of the other queue that has certainly finished
  std::map<Region, Written> written;
};

} // namespace

bool checkOrder(const Descriptor *commands, size_t count, const Chip &chip, const RegionSizes &sizes, Status &status) {
  return OrderCheck(commands, count, chip, sizes).run(status);
}

bool checkStream(const Descriptor *commands, size_t count, const Chip &chip, const RegionSizes &sizes,
                 const unsigned char *constants, Status &status) {
  return checkOperands(commands, count, chip, sizes, status) && checkPrograms(commands, count, constants, status) &&
         checkOrder(commands, count, chip, sizes, status);
}

} // namespace bmodel::npu
