//===- PlanGroups.cpp - Ops that run slice by slice -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Schedule/PlanGroups.h"

#include "codegen/Npu/Emission/EmissionInterface.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
namespace {

/// Maximum number of ops in a group: the number of candidates grows with its square.
constexpr uint32_t kMostOps = 16;
/// Numbers of slices to try.
constexpr uint32_t kSlices[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
/// Share of the free local memory that a group may be estimated to need.
constexpr double kFilled = 0.9;

using AliasSet = ValuePlan::AliasSet;
using Use = ValuePlan::Use;

RowRange rowsRead(Operation *op, Value operand, uint32_t size, RowRange y) {
  return cast<EmissionInterface>(op).rowsRead(operand, size, y);
}

/// Returns the bytes per lane of one row of all channels and images.
uint64_t rowBytes(const AliasSet &aliasSet, const Chip &chip) {
  const int64_t *sizes = aliasSet.local.view.sizes;
  return uint64_t(sizes[3]) * hw::sizeOf(aliasSet.type) * llvm::divideCeil(uint64_t(sizes[1]), chip.lanes) *
         uint64_t(sizes[0]);
}

RowRange unionOf(RowRange a, RowRange b) {
  return a.isEmpty() ? b : b.isEmpty() ? a : RowRange{std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

/// Returns true if a use sees whole planes of an alias set and begins in lane 0.
bool seesPlanes(const Use &use, const AliasSet &aliasSet, const Chip &chip) {
  const View &a = use.view, &b = aliasSet.local.view;
  bool images = a.sizes[0] == b.sizes[0] && (a.sizes[0] == 1 || a.strides[0] == b.strides[0]);
  return images && std::equal(a.sizes + 2, a.sizes + 4, b.sizes + 2) &&
         std::equal(a.strides + 2, a.strides + 4, b.strides + 2) && use.channel % chip.lanes == 0;
}

} // namespace

RowRange rowsOfWindows(RowRange y, uint32_t size, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad) {
  int64_t first = int64_t(y.begin) * stride - pad, last = int64_t(y.end - 1) * stride - pad + (kernel - 1) * dilation;
  first = std::clamp<int64_t>(first, 0, size - 1), last = std::clamp<int64_t>(last, first, size - 1);
  return RowRange{uint32_t(first), uint32_t(last + 1)};
}

uint32_t GroupPlan::rowsOf(uint32_t op) const { return plan.ops()[op].whole.dims[2]; }

/// Returns true if rows of the op's result depend on rows of its operands only, viewed as n, c, h, w.
bool GroupPlan::canSlice(uint32_t number) const {
  const ValuePlan::OpUses &op = plan.ops()[number];
  auto model = dyn_cast_or_null<EmissionInterface>(op.op);
  if (!model || !model.runsInSlices() || op.appends != 1) {
    return false;
  }
  auto type = cast<RankedTensorType>(op.op->getResult(0).getType());
  return type.getRank() == 4 && op.uses.front().access == Access::write &&
         llvm::all_of(llvm::seq(0, 4), [&](int i) { return int64_t(op.whole.dims[i]) == type.getDimSize(i); }) &&
         llvm::all_of(op.uses, [&](const Use &use) {
           return use.access != Access::write || use.fits || !plan.aliasSets()[use.aliasSet].residency.isPossible;
         });
}

/// Returns true if an alias set is complete when |op| reads it: earlier ops of the group write all of its channels.
bool GroupPlan::isWritten(const SliceGroup &group, unsigned aliasSet, uint32_t op) const {
  uint32_t writers = 0;
  for (uint32_t before = group.first; before < op; ++before) {
    for (const Use &use : plan.ops()[before].uses) {
      if (use.aliasSet == aliasSet && use.access == Access::write) {
        ++writers;
        if (!use.fits || !seesPlanes(use, plan.aliasSets()[aliasSet], chip)) {
          return false;
        }
      }
    }
  }
  return writers == plan.aliasSets()[aliasSet].writers && (parts || writers == 1);
}

/// Finds the values that stay slice by slice. Returns false if a value that is written and read in the group cannot.
bool GroupPlan::findAliasSets(SliceGroup &group) const {
  group.aliasSets.clear();
  llvm::SmallVector<unsigned> leaving;
  for (uint32_t op = group.first; op <= group.last; ++op) {
    const Use &result = plan.ops()[op].uses.front();
    for (const Use &use : plan.ops()[op].uses) {
      const AliasSet &aliasSet = plan.aliasSets()[use.aliasSet];
      // An op that reads what it writes handles a piece of a result, which leaves when the group is complete.
      if (use.access != Access::write && result.access == Access::write && result.aliasSet == use.aliasSet &&
          !aliasSet.residency.isChosen) {
        leaving.push_back(use.aliasSet);
        continue;
      }
      bool madeInside = aliasSet.first >= group.first && aliasSet.first <= group.last;
      if (use.access == Access::write || !madeInside || aliasSet.residency.isChosen) {
        if (use.access != Access::write && aliasSet.residency.isChosen && !use.fits) {
          return false; // the value may not be in off-chip memory yet
        }
        continue;
      }
      if (!use.fits || !aliasSet.residency.isPossible || !aliasSet.local.dense || !seesPlanes(use, aliasSet, chip) ||
          !isWritten(group, use.aliasSet, op)) {
        return false;
      }
      if (!group.holds(use.aliasSet)) {
        group.aliasSets.push_back(use.aliasSet);
      }
    }
  }
  bool areGone = llvm::any_of(leaving, [&](unsigned aliasSet) { return group.holds(aliasSet); });
  return !group.aliasSets.empty() && !areGone;
}

/// Divides the rows of each op into |slices| slices: the rows to compute, and the rows to hold.
void GroupPlan::findParts(SliceGroup &group, uint32_t slices) const {
  uint32_t count = group.last - group.first + 1;
  group.slices = slices, group.parts.assign(slices, std::vector<SlicePart>(count));
  std::vector<uint32_t> done(count, 0);
  for (uint32_t slice = 0; slice < slices; ++slice) {
    llvm::DenseMap<unsigned, RowRange> needs; // by alias set
    for (uint32_t k = count; k-- > 0;) {
      const ValuePlan::OpUses &op = plan.ops()[group.first + k];
      uint32_t rows = rowsOf(group.first + k);
      unsigned result = op.uses.front().aliasSet;
      const AliasSet &aliasSet = plan.aliasSets()[result];
      auto needed = needs.find(result);
      bool isRead = aliasSet.residency.isChosen ? aliasSet.last > group.first + k && aliasSet.last <= group.last
                                                : group.holds(result);
      // Results that no op of the group reads advance evenly; those that other ops read must be complete at the end.
      RowRange holds = needed != needs.end() ? needed->second : RowRange{done[k], done[k]};
      if (!isRead) {
        holds = {done[k], uint32_t(uint64_t(rows) * (slice + 1) / slices)};
      } else if (slice + 1 == slices && (aliasSet.stored || aliasSet.last > group.last)) {
        holds.end = rows;
      }
      // Windows whose stride exceeds the kernel must not leave rows out: each slice continues where the previous one
      // ended.
      holds = {std::min(holds.begin, done[k]), std::max(holds.end, done[k])};
      SlicePart &part = group.parts[slice][k];
      part.holds = holds, part.computes = {done[k], holds.end}, done[k] = holds.end;
      if (part.computes.isEmpty()) {
        continue;
      }
      for (const Use &use : op.uses) {
        uint32_t height = uint32_t(plan.aliasSets()[use.aliasSet].local.view.sizes[2]);
        if (use.access != Access::write &&
            (group.holds(use.aliasSet) || plan.aliasSets()[use.aliasSet].residency.isChosen)) {
          RowRange &need = needs[use.aliasSet];
          need = unionOf(need, rowsRead(op.op, use.value, height, part.computes));
        }
      }
    }
  }
}

/// Returns the bytes per lane and row that an op needs beside operands and result, e.g. for raw sums.
uint64_t GroupPlan::temporariesOf(uint32_t number) const {
  const ValuePlan::OpUses &op = plan.ops()[number];
  uint64_t values = 0;
  for (const Use &use : op.uses) {
    const AliasSet &aliasSet = plan.aliasSets()[use.aliasSet];
    values += rowBytes(aliasSet, chip) * uint64_t(aliasSet.local.view.sizes[2]);
  }
  return op.used > values ? (op.used - values) / rowsOf(number) : 0;
}

/// Estimates the bytes per lane that the slices need.
uint64_t GroupPlan::bytesOf(const SliceGroup &group) const {
  uint64_t bytes = 0, temporaries = 0;
  for (uint32_t k = 0; k <= group.last - group.first; ++k) {
    const ValuePlan::OpUses &op = plan.ops()[group.first + k];
    bytes += op.liveAcross;
    uint32_t holds = 0, computes = 0;
    for (const std::vector<SlicePart> &slice : group.parts) {
      // While rows move to the next buffer, both buffers are in use.
      bool moves = slice[k].holds.begin < slice[k].computes.begin && !slice[k].computes.isEmpty();
      holds = std::max(holds, slice[k].holds.size() * (moves ? 2 : 1));
      computes = std::max(computes, slice[k].computes.size());
    }
    temporaries = std::max(temporaries, temporariesOf(group.first + k) * computes);
    for (const Use &use : op.uses) {
      const AliasSet &aliasSet = plan.aliasSets()[use.aliasSet];
      bool isWrite = use.access == Access::write;
      if (aliasSet.residency.isChosen || (group.holds(use.aliasSet) && !isWrite)) {
        continue;
      }
      if (isWrite && group.holds(use.aliasSet) && aliasSet.first != group.first + k) {
        continue; // its channels are in the buffer of the first writer
      }
      const RowRange inside{1u << 10, (1u << 10) + computes};
      uint32_t tile = isWrite ? computes : rowsRead(op.op, use.value, 1u << 20, inside).size();
      bytes += (group.holds(use.aliasSet) ? holds : 2 * tile) * rowBytes(aliasSet, chip); // double-buffered
    }
  }
  return bytes + temporaries;
}

/// Returns the cycles that a group saves: those of the avoided traffic, minus the overhead of slices.
double GroupPlan::sparedBy(const SliceGroup &group) const {
  double bytes = 0, cycles = 0;
  for (uint32_t op = group.first; op <= group.last; ++op) {
    for (const Use &use : plan.ops()[op].uses) {
      const AliasSet &aliasSet = plan.aliasSets()[use.aliasSet];
      if (group.holds(use.aliasSet)) {
        bytes += use.access == Access::write ? (aliasSet.stored || aliasSet.last > group.last ? 0 : double(use.bytes))
                                             : double(use.bytes);
      }
    }
    cycles += double(group.slices) * (chip.issueCycles + chip.matrixFill);
    unsigned result = plan.ops()[op].uses.front().aliasSet;
    bool opens = group.holds(result) && plan.aliasSets()[result].first == op;
    for (uint32_t slice = 1; opens && slice < group.slices; ++slice) {
      const SlicePart &part = group.parts[slice][op - group.first];
      double again = double(part.computes.begin) - double(std::min(part.holds.begin, part.computes.begin));
      cycles +=
          again > 0 ? chip.dmaLatency + again * double(rowBytes(plan.aliasSets()[result], chip)) / chip.portBytes : 0;
    }
  }
  return bytes / chip.ddrBytesPerCycle() - cycles;
}

/// Finds the smallest number of slices, at least |least|, that fits. Returns false if none does.
bool GroupPlan::fits(SliceGroup &group, uint32_t least) const {
  uint64_t room = chip.laneBytes;
  uint32_t rows = UINT32_MAX;
  for (uint32_t op = group.first; op <= group.last; ++op) {
    room = std::min(room, chip.laneBytes - std::min<uint64_t>(chip.laneBytes, plan.bytesAt(op)));
    rows = std::min(rows, rowsOf(op));
  }
  for (uint32_t slices : kSlices) {
    if (slices < least || slices > rows) {
      continue;
    }
    findParts(group, slices);
    if (double(bytesOf(group)) <= kFilled * double(room)) {
      return true;
    }
  }
  return false;
}

GroupPlan::GroupPlan(const ValuePlan &plan, const Chip &chip, bool parts) : plan(plan), chip(chip), parts(parts) {
  uint32_t count = uint32_t(plan.ops().size());
  std::vector<double> best(count + 1, 0); // cycles saved by groups among the first ops
  std::vector<std::optional<SliceGroup>> ending(count + 1);
  for (uint32_t end = 1; end <= count; ++end) {
    best[end] = best[end - 1];
    uint64_t liveAcross = 0;
    for (uint32_t first = end; first-- > 0 && end - first <= kMostOps && canSlice(first);) {
      liveAcross += plan.ops()[first].liveAcross;
      SliceGroup group{first, end - 1};
      if (liveAcross > chip.laneBytes || !findAliasSets(group) || !fits(group, 0)) {
        continue;
      }
      double spared = sparedBy(group);
      if (spared > 0 && best[first] + spared > best[end]) {
        best[end] = best[first] + spared, ending[end] = std::move(group);
      }
    }
  }
  for (uint32_t end = count; end > 0;) {
    if (ending[end] && best[end] > best[end - 1]) {
      chosen.push_back(*ending[end]);
      end = ending[end]->first;
    } else {
      --end;
    }
  }
}

GroupPlan::GroupPlan(const ValuePlan &plan, const Chip &chip, llvm::ArrayRef<LayerSchedule::Group> groups)
    : plan(plan), chip(chip) {
  for (const LayerSchedule::Group &each : groups) {
    SliceGroup group{each.first, each.last};
    bool isIndependent = llvm::none_of(
        chosen, [&](const SliceGroup &other) { return each.first <= other.last && other.first <= each.last; });
    bool inside = each.first <= each.last && each.last < plan.ops().size() && each.slices > 1;
    if (isIndependent && inside &&
        llvm::all_of(llvm::seq(each.first, each.last + 1), [&](uint32_t op) { return canSlice(op); }) &&
        findAliasSets(group) && fits(group, each.slices)) {
      chosen.push_back(std::move(group));
    }
  }
}

bool GroupPlan::add(SliceGroup group) {
  bool canRun = llvm::all_of(llvm::seq(group.first, group.last + 1), [&](uint32_t op) { return canSlice(op); });
  if (!canRun || !findAliasSets(group)) {
    return false;
  }
  chosen.push_back(std::move(group));
  return true;
}

bool GroupPlan::hasParts() const {
  return llvm::any_of(chosen, [&](const SliceGroup &group) {
    return llvm::any_of(group.aliasSets, [&](unsigned aliasSet) { return plan.aliasSets()[aliasSet].writers > 1; });
  });
}

void GroupPlan::recheck() {
  llvm::erase_if(chosen, [&](const SliceGroup &group) {
    SliceGroup now{group.first, group.last};
    return !findAliasSets(now) || now.aliasSets != group.aliasSets;
  });
}

const SliceGroup *GroupPlan::at(uint32_t op) const {
  auto found = llvm::find_if(chosen, [&](const SliceGroup &group) { return group.first == op; });
  return found == chosen.end() ? nullptr : &*found;
}

bool GroupPlan::refine(const std::set<uint32_t> &ops) {
  bool found = false;
  for (size_t i = 0; i < chosen.size(); ++i) {
    SliceGroup &group = chosen[i];
    auto op = ops.lower_bound(group.first);
    if (op == ops.end() || *op > group.last) {
      continue;
    }
    found = true;
    if (!fits(group, group.slices + 1) || sparedBy(group) <= 0) {
      chosen.erase(chosen.begin() + int64_t(i--));
    }
  }
  return found;
}

} // namespace tessera::npu
