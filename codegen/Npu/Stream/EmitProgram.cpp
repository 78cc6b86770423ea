//===- EmitProgram.cpp - From a schedule to commands ----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Stream/EmitProgram.h"

#include "codegen/Npu/Emission/FunctionEmission.h"
#include "codegen/Npu/Transforms/Programs.h"

using namespace mlir;

namespace tessera::npu {
namespace hw = bmodel::npu;

LogicalResult survey(func::FuncOp function, Constants &constants, const Chip &chip, ValuePlan &plan, bool mayBeResident,
                     Observe observe, std::vector<UnsupportedOp> &unsupportedOps) {
  CommandStream scratch(chip, constants);
  FunctionEmission emitter(function, scratch, plan, nullptr);
  observe(emitter);
  if (failed(emitter.run())) {
    unsupportedOps = std::move(emitter.unsupportedOps);
    return failure();
  }
  plan.analyzeResidency(mayBeResident);
  return success();
}

void placeOutside(ValuePlan &plan, const GroupPlan &groups) {
  SmallVector<std::pair<uint32_t, uint32_t>> ranges;
  SmallVector<unsigned> sliced;
  for (const SliceGroup &group : groups.groups()) {
    ranges.push_back({group.first, group.last});
    for (unsigned aliasSet : group.aliasSets) {
      if (plan.aliasSets()[aliasSet].last <= group.last) {
        sliced.push_back(aliasSet);
      }
    }
  }
  plan.placeOutside(ranges, sliced);
}

/// Takes the commands of a memory plan, unless the assembly already has faster ones.
static void take(MemoryPlan &memory, const Overlap &overlap, Assembly &assembly) {
  auto [commands, cycles] = memory.takeScheduled();
  if (assembly.commands.empty() || cycles < assembly.cycles) {
    assembly.commands = std::move(commands), assembly.localPeak = memory.peak(), assembly.cycles = cycles;
    assembly.overlap = overlap;
  }
}

Assembly assemble(CommandStream &stream, uint32_t inputs, unsigned effort) {
  stream.findIndependentStages();
  Overlap overlap{.prefetch = effort > 0};
  std::optional<MemoryPlan> memory;
  for (bool disjoint : {true, false}) {
    if (!memory || !memory->misfits().empty()) {
      overlap.disjointStores = disjoint;
      memory.emplace(stream, inputs, overlap).run();
    }
  }
  Assembly result;
  result.misfits = memory->misfits();
  if (result.misfits.empty()) {
    take(*memory, overlap, result);
    auto tryToo = [&](const Overlap &more) {
      MemoryPlan plan(stream, inputs, more);
      plan.run();
      if (plan.misfits().empty()) {
        take(plan, more, result);
      }
    };
    if (effort > 1) {
      tryToo({.prefetch = true, .disjointStores = true, .crossLayerPrefetch = true});
      Overlap holding = result.overlap;
      holding.holdStores = true;
      tryToo(holding);
    }
  }
  return result;
}

UnsupportedOp rejectionOf(ArrayRef<MemoryPlan::Misfit> misfits, const ValuePlan &plan, const CommandStream &stream) {
  const ValuePlan::OpUses *worst = nullptr;
  for (const MemoryPlan::Misfit &each : misfits) {
    for (uint32_t op = stream.stages[each.first].layer; op <= stream.stages[each.last].layer; ++op) {
      if (op < plan.ops().size() && plan.ops()[op].op && (!worst || plan.ops()[op].used > worst->used)) {
        worst = &plan.ops()[op];
      }
    }
  }
  return {worst ? worst->op : nullptr, "has tiles that do not fit local memory"};
}

FailureOr<ScheduledStream> streamOfSchedule(func::FuncOp function, const Chip &chip, Constants &constants,
                                            std::vector<UnsupportedOp> &unsupportedOps) {
  std::optional<unsigned> effort = effortOf(function);
  if (!effort) {
    return function.emitError("does not have a schedule (npu.effort): run npu-schedule first");
  }
  ValuePlan plan(function, chip);
  GroupPlan groups = GroupPlan::none(plan, chip);
  if (failed(survey(
          function, constants, chip, plan, true, [](FunctionEmission &) {}, unsupportedOps)) ||
      failed(readSchedule(function, chip, plan, groups))) {
    return failure();
  }
  placeOutside(plan, groups);
  ScheduledStream result;
  result.stream = std::make_unique<CommandStream>(chip, constants);
  FunctionEmission emitter(function, *result.stream, plan, &groups);
  if (failed(emitter.run())) {
    unsupportedOps = std::move(emitter.unsupportedOps);
    return failure();
  }
  result.assembly = assemble(*result.stream, function.getNumArguments(), *effort);
  if (!result.assembly.misfits.empty()) {
    unsupportedOps.push_back(rejectionOf(result.assembly.misfits, plan, *result.stream));
    return failure();
  }
  result.workspaceBytes = plan.workspaceBytes, result.workspaceLowerBound = plan.workspaceLowerBound;
  result.layerSchedule = describe(plan, LocalSchedule(plan, groups));
  return result;
}

LogicalResult finishStream(func::FuncOp function, const CommandStream &stream, const Overlap &overlap,
                           ArrayRef<hw::Descriptor> assembled, const codegen::IrObserver &observer) {
  ProgramFrame frame{function.getName().str(), function.getNumArguments(), function.getNumResults(), overlap};
  OwningOpRef<ModuleOp> module = buildProgram(function.getContext(), stream, frame);
  FailureOr<std::vector<hw::Descriptor>> commands = finishProgram(*module, observer);
  if (failed(commands)) {
    return function.emitError("internal error: the program is not finished");
  }
  bool isSame = commands->size() == assembled.size() &&
                std::memcmp(commands->data(), assembled.data(), assembled.size() * sizeof(hw::Descriptor)) == 0;
  return isSame ? success()
                : function.emitError("internal error: the program is not the one that its schedule was chosen for");
}

LogicalResult emitScheduled(func::FuncOp function, const Chip &chip, Constants &constants, NpuProgram &program,
                            std::vector<UnsupportedOp> &unsupportedOps) {
  FailureOr<ScheduledStream> result = streamOfSchedule(function, chip, constants, unsupportedOps);
  if (failed(result) ||
      failed(finishStream(function, *result->stream, result->assembly.overlap, result->assembly.commands, {}))) {
    return failure();
  }
  program.commands = std::move(result->assembly.commands), program.localPeak = result->assembly.localPeak;
  program.layers = std::move(result->stream->layers);
  program.sizes.workspace = result->workspaceBytes, program.workspaceLowerBound = result->workspaceLowerBound;
  program.layerSchedule = std::move(result->layerSchedule);
  return success();
}

} // namespace tessera::npu
