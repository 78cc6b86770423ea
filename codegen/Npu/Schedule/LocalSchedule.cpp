//===- LocalSchedule.cpp - What stays in local memory, and slices ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Schedule/LocalSchedule.h"

#include "codegen/Npu/IR/NpuDialect.h"
#include "top_dialect/IR/Names.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace tessera::npu {

LocalSchedule::LocalSchedule(const ValuePlan &plan, const GroupPlan &groups) : groups(groups.groups()) {
  for (auto [index, aliasSet] : llvm::enumerate(plan.aliasSets())) {
    if (aliasSet.residency.isChosen) {
      resident.push_back(unsigned(index));
    }
  }
  for (uint32_t layer = 0; layer < plan.ops().size(); ++layer) {
    if (plan.isSingleBuffered(layer)) {
      singleBuffered.insert(layer);
    }
  }
}

static ResidentAttr residentOf(const ValuePlan::AliasSet &aliasSet, MLIRContext *context) {
  return ResidentAttr::get(context, aliasSet.first, aliasSet.last, aliasSet.local.bytes, aliasSet.local.dense,
                           aliasSet.stored);
}

/// Returns the slices of layer |k| of a group.
static SlicesAttr slicesOf(const SliceGroup &group, size_t k, MLIRContext *context) {
  SmallVector<uint32_t> from, until;
  for (const std::vector<SlicePart> &slice : group.parts) {
    from.push_back(slice[k].holds.begin), until.push_back(slice[k].computes.end);
  }
  return SlicesAttr::get(context, group.first, group.last, from, until);
}

void eraseSchedule(func::FuncOp function) {
  function->removeAttr(NpuDialect::kEffortAttr);
  for (Operation &op : function.getBody().front()) {
    for (StringRef name : {NpuDialect::kResidentAttr, NpuDialect::kSlicesAttr, NpuDialect::kSingleBufferedAttr}) {
      op.removeAttr(name);
    }
  }
}

void writeSchedule(func::FuncOp function, const ValuePlan &surveyed, const LocalSchedule &schedule, unsigned effort) {
  eraseSchedule(function);
  Builder builder(function.getContext());
  function->setAttr(NpuDialect::kEffortAttr, builder.getI32IntegerAttr(int32_t(effort)));
  for (const ValuePlan::OpUses &op : surveyed.ops()) {
    for (const ValuePlan::Use &use : op.uses) {
      if (use.access == Access::write && llvm::is_contained(schedule.resident, use.aliasSet)) {
        use.value.getDefiningOp()->setAttr(NpuDialect::kResidentAttr,
                                           residentOf(surveyed.aliasSets()[use.aliasSet], builder.getContext()));
      }
    }
  }
  for (const SliceGroup &group : schedule.groups) {
    for (uint32_t layer = group.first; layer <= group.last; ++layer) {
      surveyed.ops()[layer].op->setAttr(NpuDialect::kSlicesAttr,
                                        slicesOf(group, layer - group.first, builder.getContext()));
    }
  }
  for (uint32_t layer : schedule.singleBuffered) {
    if (Operation *op = surveyed.ops()[layer].op) { // copied outputs do not have tiles
      op->setAttr(NpuDialect::kSingleBufferedAttr, builder.getUnitAttr());
    }
  }
}

std::optional<unsigned> effortOf(func::FuncOp function) {
  auto effort = function->getAttrOfType<IntegerAttr>(NpuDialect::kEffortAttr);
  return effort ? std::optional(unsigned(effort.getInt())) : std::nullopt;
}

namespace {

/// Applies the schedule on a function's ops to a survey.
class Reader {
public:
  Reader(func::FuncOp function, const Chip &chip, ValuePlan &plan, GroupPlan &groups)
      : function(function), chip(chip), plan(plan), groups(groups) {}

  LogicalResult run() {
    if (failed(readResidents()) || failed(readGroups())) {
      return failure();
    }
    for (auto [layer, op] : llvm::enumerate(plan.ops())) {
      if (op.op && op.op->hasAttr(NpuDialect::kSingleBufferedAttr)) {
        plan.useSingleBuffer(uint32_t(layer));
      }
    }
    return success();
  }

private:
  LogicalResult readResidents() {
    std::vector<Attribute> said(plan.aliasSets().size()); // the same for all writers of an alias set
    std::vector<bool> isRead(plan.aliasSets().size(), false);
    llvm::DenseSet<Operation *> writers;
    for (const ValuePlan::OpUses &layer : plan.ops()) {
      for (const ValuePlan::Use &use : layer.uses) {
        if (use.access != Access::write) {
          continue;
        }
        Operation *op = use.value.getDefiningOp();
        Attribute says = op->getAttr(NpuDialect::kResidentAttr);
        if (isRead[use.aliasSet] && says != said[use.aliasSet]) {
          return op->emitError(
              "shares bytes with a value that has a different npu.resident: both need the same attribute, or neither");
        }
        said[use.aliasSet] = says, isRead[use.aliasSet] = true;
        writers.insert(op);
        if (says && failed(check(op, cast<ResidentAttr>(says), plan.aliasSets()[use.aliasSet]))) {
          return failure();
        }
      }
    }
    for (Operation &op : function.getBody().front()) {
      if (op.hasAttr(NpuDialect::kResidentAttr) && !writers.contains(&op)) {
        return op.emitError("has npu.resident, but no layer writes its result");
      }
    }
    for (auto [index, says] : llvm::enumerate(said)) {
      if (says) {
        plan.keepWhole(unsigned(index));
      }
    }
    for (auto [layer, op] : llvm::enumerate(plan.ops())) {
      if (uint64_t bytes = plan.bytesAt(uint32_t(layer)); bytes > chip.laneBytes) {
        return (op.op ? op.op->emitError() : function.emitError())
               << "runs beside resident values of " << bytes << " bytes per lane, but a lane has " << chip.laneBytes;
      }
    }
    return success();
  }

  LogicalResult check(Operation *op, ResidentAttr says, const ValuePlan::AliasSet &aliasSet) {
    if (!aliasSet.residency.isPossible) {
      return op->emitError(
          "has npu.resident, but its result cannot stay in local memory: it is not read there, or it is "
          "written with another layout than it is read");
    }
    ResidentAttr expected = residentOf(aliasSet, op->getContext());
    if (says != expected) {
      return op->emitError("has npu.resident = ") << says << ", but what it writes is used as " << expected;
    }
    return success();
  }

  LogicalResult readGroups() {
    uint32_t layers = uint32_t(plan.ops().size());
    for (uint32_t layer = 0; layer < layers; ++layer) {
      Operation *op = plan.ops()[layer].op;
      auto says = op ? op->getAttrOfType<SlicesAttr>(NpuDialect::kSlicesAttr) : SlicesAttr();
      if (!says) {
        continue;
      }
      if (says.getFirst() != layer || says.getLast() >= layers) {
        return op->emitError("is layer ") << layer << ", the first of a group, but has npu.slices = " << says;
      }
      if (failed(readGroup(says))) {
        return failure();
      }
      layer = says.getLast();
    }
    return success();
  }

  LogicalResult readGroup(SlicesAttr first) {
    SliceGroup group{first.getFirst(), first.getLast(), uint32_t(first.getUntil().size())};
    group.parts.resize(group.slices);
    for (uint32_t layer = group.first; layer <= group.last; ++layer) {
      Operation *op = plan.ops()[layer].op;
      auto says = op ? op->getAttrOfType<SlicesAttr>(NpuDialect::kSlicesAttr) : SlicesAttr();
      bool isAlike = says && says.getFirst() == group.first && says.getLast() == group.last &&
                     says.getUntil().size() == group.slices;
      if (!isAlike) {
        return (op ? op->emitError() : function.emitError())
               << "is layer " << layer << " of a group of " << group.slices << " slices, layers " << group.first
               << " to " << group.last << ", but its npu.slices says otherwise";
      }
      uint32_t rows = plan.ops()[layer].whole.dims[2], done = 0;
      if (says.getUntil().back() > rows) {
        return op->emitError("computes rows to ") << says.getUntil().back() << " of " << rows << " in npu.slices";
      }
      for (uint32_t slice = 0; slice < group.slices; ++slice) {
        uint32_t end = says.getUntil()[slice];
        group.parts[slice].push_back({{done, end}, {says.getFrom()[slice], end}});
        done = end;
      }
    }
    Operation *op = plan.ops()[group.first].op;
    return groups.add(std::move(group)) ? success() : op->emitError("is in a group that cannot run slice by slice");
  }

  func::FuncOp function;
  const Chip &chip;
  ValuePlan &plan;
  GroupPlan &groups;
};

} // namespace

LogicalResult readSchedule(func::FuncOp function, const Chip &chip, ValuePlan &plan, GroupPlan &groups) {
  return Reader(function, chip, plan, groups).run();
}

std::string nameOfLayer(const ValuePlan &plan, uint32_t layer) {
  Operation *op = plan.ops()[layer].op;
  return op ? top::getDisplayName(op->getLoc()) : "output";
}

LayerSchedule describe(const ValuePlan &plan, const LocalSchedule &schedule) {
  LayerSchedule layerSchedule;
  auto note = [&](uint32_t first, uint32_t last) {
    layerSchedule.names[first] = nameOfLayer(plan, first), layerSchedule.names[last] = nameOfLayer(plan, last);
  };
  for (unsigned index : schedule.resident) {
    const ValuePlan::AliasSet &aliasSet = plan.aliasSets()[index];
    layerSchedule.whole.push_back({aliasSet.first, aliasSet.last, aliasSet.local.bytes, aliasSet.stored});
    note(aliasSet.first, aliasSet.last);
  }
  for (const SliceGroup &group : schedule.groups) {
    layerSchedule.groups.push_back({group.first, group.last, group.slices});
    note(group.first, group.last);
  }
  llvm::sort(layerSchedule.groups, [](const auto &a, const auto &b) { return a.first < b.first; });
  return layerSchedule;
}

} // namespace tessera::npu
