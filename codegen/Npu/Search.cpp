//===- Search.cpp - The fastest of several plans --------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Search.h"

#include "bmodel/npu/latency.h"
#include "codegen/Npu/Emission/FunctionEmission.h"
#include "codegen/Npu/PlanMemory.h"
#include "top_dialect/IR/Names.h"

using namespace mlir;

namespace tessera::npu {
namespace hw = bmodel::npu;

/// Plans that a search tries at most.
static constexpr unsigned kMostTries = 96;
/// Shares of local memory that values may take whole: what they leave is for values that stay slice by slice.
static constexpr double kShares[] = {0.75, 0.5, 0.25, 0.0};

void Decisions::append(const Decisions &other, uint32_t first) {
  for (Stay stay : other.whole) {
    stay.first += first, stay.last += first;
    whole.push_back(stay);
  }
  for (const Group &group : other.groups) {
    groups.push_back({group.first + first, group.last + first, group.slices});
  }
  for (const auto &[layer, name] : other.names) {
    names[layer + first] = name;
  }
}

/// Where there was no room for a buffer: more slices, fewer values that stay, or else fewer tiles at once.
static bool makeRoom(ValuePlan &plan, GroupPlan &groups, const MemoryPlan &memory, const Stream &stream) {
  std::set<uint32_t> crowded;
  for (const MemoryPlan::Misfit &each : memory.misfits()) {
    for (size_t step = each.first; step <= each.last; ++step) {
      crowded.insert(stream.steps[step].layer);
    }
  }
  if (groups.refine(crowded)) {
    return true;
  }
  bool changed = false;
  for (const MemoryPlan::Misfit &each : memory.misfits()) {
    uint32_t first = stream.steps[each.first].layer, last = stream.steps[each.last].layer;
    if (plan.drop(first, last)) {
      changed = true;
      continue;
    }
    for (uint32_t op = first; op <= last; ++op) {
      changed = changed || !plan.isTight(op);
      plan.tighten(op);
    }
  }
  return changed;
}

static void placeOutside(ValuePlan &plan, const GroupPlan &groups) {
  SmallVector<std::pair<uint32_t, uint32_t>> ranges;
  SmallVector<unsigned> sliced;
  for (const SliceGroup &group : groups.groups()) {
    ranges.push_back({group.first, group.last});
    for (unsigned family : group.families) {
      if (plan.families()[family].last <= group.last) {
        sliced.push_back(family);
      }
    }
  }
  plan.placeOutside(ranges, sliced);
}

/// Of the ops whose tiles have no addresses the one that works with most.
static Refusal misfitOf(const ValuePlan &plan, const MemoryPlan &memory, const Stream &stream) {
  const ValuePlan::OpUses *worst = nullptr;
  for (const MemoryPlan::Misfit &each : memory.misfits()) {
    for (uint32_t op = stream.steps[each.first].layer; op <= stream.steps[each.last].layer; ++op) {
      if (op < plan.ops().size() && plan.ops()[op].op && (!worst || plan.ops()[op].used > worst->used)) {
        worst = &plan.ops()[op];
      }
    }
  }
  return {worst ? worst->op : nullptr, "has tiles for which there are no addresses in local memory"};
}

static double cyclesOf(ArrayRef<hw::Descriptor> commands, const hw::Chip &chip) {
  std::vector<hw::Cost> costs;
  for (const hw::Descriptor &command : commands) {
    costs.push_back(hw::costOf(command, chip));
  }
  double end = 0;
  for (const hw::Span &span : hw::schedule(commands.data(), costs.data(), costs.size(), chip)) {
    end = std::max(end, span.end);
  }
  return end;
}

std::string Search::nameOf(uint32_t layer) const {
  Operation *op = surveyed.ops()[layer].op;
  return op ? top::getDisplayName(op->getLoc()) : "output";
}

/// Takes the commands of a plan of memory, unless the trial has some that are faster.
void Search::take(const MemoryPlan &memory, Trial &trial) const {
  std::vector<hw::Descriptor> commands = memory.commands();
  hw::assignWaits(commands, chip);
  double cycles = cyclesOf(commands, chip);
  if (trial.program.commands.empty() || cycles < trial.cycles) {
    trial.program.commands = std::move(commands), trial.program.localPeak = memory.peak(), trial.cycles = cycles;
  }
}

/// Plans that run() will go through, about.
size_t Search::expectedTries() const {
  return options.plan ? 1 : options.opt > 2 ? kMostTries : options.opt > 1 ? std::size(kShares) : 1;
}

/// The survey is the first part, each try one more; what is found to be emitted again counts no more than once.
void Search::observe(FunctionEmission &emitter) const {
  if (options.progress) {
    emitter.progress = [this](size_t done, size_t total) {
      const size_t part = tries + 1;
      options.progress(done, total, part, std::max(part, expectedTries() + 1));
    };
  }
}

/// Commands of a plan, changed until all of them have room.
LogicalResult Search::emit(ValuePlan &plan, GroupPlan &groups, Trial &trial) {
  while (true) {
    Stream stream(chip, constants);
    groups.recheck();
    placeOutside(plan, groups);
    FunctionEmission emitter(function, stream, plan, &groups);
    observe(emitter);
    if (failed(emitter.run())) {
      refusals = std::move(emitter.refusals);
      return failure();
    }
    if (emitter.wantsRetry) {
      continue;
    }
    stream.findFreeSteps();
    std::optional<MemoryPlan> made;
    for (bool apart : {true, false}) {
      if (!made || !made->misfits().empty()) {
        made.emplace(stream, function.getNumArguments(), options.opt > 0, apart, /*across=*/false);
      }
    }
    const MemoryPlan &memory = *made;
    if (memory.misfits().empty()) {
      take(memory, trial);
      if (MemoryPlan across(stream, function.getNumArguments(), true, true, true);
          options.opt > 1 && across.misfits().empty()) {
        take(across, trial);
      }
      NpuProgram &program = trial.program;
      program.layers = std::move(stream.layers);
      program.sizes.workspace = plan.workspaceBytes, program.workspaceLowerBound = plan.workspaceLowerBound;
      return success();
    }
    if (!makeRoom(plan, groups, memory, stream)) {
      refusals.push_back(misfitOf(plan, memory, stream));
      return failure();
    }
  }
}

LogicalResult Search::tryPlan(const ValuePlan &plan, const Groups *wanted) {
  if (wanted) {
    return tryGroups(plan, GroupPlan(plan, chip, *wanted));
  }
  GroupPlan groups(plan, chip);
  LogicalResult made = groups.hasParts() ? tryGroups(plan, GroupPlan(plan, chip, /*parts=*/false)) : failure();
  return success(succeeded(tryGroups(plan, groups)) || succeeded(made));
}

LogicalResult Search::tryGroups(const ValuePlan &chosen, const GroupPlan &wanted) {
  ++tries;
  ValuePlan plan = chosen;
  GroupPlan groups(plan, wanted);
  Trial trial;
  if (failed(emit(plan, groups, trial))) {
    return failure();
  }
  if (best && trial.cycles >= best->cycles) {
    return success();
  }
  Decisions &decisions = trial.program.decisions;
  auto note = [&](uint32_t layer) { decisions.names[layer] = nameOf(layer); };
  for (auto [index, family] : llvm::enumerate(plan.families())) {
    if (family.stays) {
      trial.whole.push_back(unsigned(index));
      decisions.whole.push_back({family.first, family.last, family.bytes, family.stored});
      note(family.first), note(family.last);
    }
  }
  for (const SliceGroup &group : groups.groups()) {
    decisions.groups.push_back({group.first, group.last, group.slices});
    note(group.first), note(group.last);
  }
  llvm::sort(decisions.groups, [](const auto &a, const auto &b) { return a.first < b.first; });
  best = std::move(trial);
  return success();
}

LogicalResult Search::tryShare(double share) {
  ValuePlan plan = surveyed;
  plan.choose(share);
  return tryPlan(plan, nullptr);
}

LogicalResult Search::tryThese(ArrayRef<unsigned> whole, const Groups *groups) {
  ValuePlan plan = surveyed;
  plan.choose(whole);
  return tryPlan(plan, groups);
}

LogicalResult Search::refuse(const Twine &why) {
  refusals.push_back({nullptr, ("the plan " + why).str(), /*ofPlan=*/true});
  return failure();
}

/// Takes the decisions for these layers as they are, as far as there is room.
LogicalResult Search::follow(const Decisions &decisions) {
  uint32_t begin = options.firstLayer, count = uint32_t(surveyed.ops().size());
  for (const auto &[layer, name] : decisions.names) {
    if (layer >= begin && layer - begin < count && nameOf(layer - begin) != name) {
      return refuse("says '" + name + "' where layer " + Twine(layer) + " is '" + nameOf(layer - begin) +
                    "': it is of another model, chip or version");
    }
  }
  std::vector<unsigned> whole;
  for (const Decisions::Stay &stay : decisions.whole) {
    if (stay.first < begin || stay.first - begin >= count) {
      continue; // of another stream
    }
    auto matches = [&](unsigned index) {
      const ValuePlan::Family &family = surveyed.families()[index];
      return family.canStay && family.first + begin == stay.first && family.last + begin == stay.last &&
             !llvm::is_contained(whole, index);
    };
    auto families = llvm::seq<unsigned>(0, unsigned(surveyed.families().size()));
    auto found = llvm::find_if(families, matches);
    if (found == families.end()) {
      return refuse("lets a value stay from layer " + Twine(stay.first) + " to " + Twine(stay.last) +
                    ", but no value that could is made and last read there");
    }
    whole.push_back(*found);
  }
  Groups groups;
  for (const Decisions::Group &group : decisions.groups) {
    if (group.first >= begin && group.first - begin < count) {
      groups.push_back({group.first - begin, group.last - begin, group.slices});
    }
  }
  ValuePlan plan = surveyed;
  plan.choose(whole);
  GroupPlan checked(plan, chip, groups);
  if (checked.groups().size() < groups.size()) {
    for (const Decisions::Group &group : groups) {
      if (!checked.at(group.first)) {
        return refuse("has a group of layers " + Twine(group.first + begin) + " to " + Twine(group.last + begin) +
                      " in " + Twine(group.slices) + " slices, which cannot run so or does not fit");
      }
    }
  }
  return tryThese(whole, &groups);
}

/// Whether an attempt found a faster program. What cannot be emitted is none.
bool Search::improves(llvm::function_ref<void()> attempt) {
  double before = best->cycles;
  attempt();
  refusals.clear();
  return best->cycles < before;
}

/// Changes one decision after the other as long as that makes the program faster.
void Search::refine() {
  auto toggle = [&](unsigned index) {
    std::vector<unsigned> whole = best->whole;
    auto found = llvm::find(whole, index);
    found == whole.end() ? whole.push_back(index) : (void)whole.erase(found);
    (void)tryThese(whole, nullptr);
  };
  auto changeGroup = [&](size_t index, bool drop) {
    std::vector<unsigned> whole = best->whole;
    Groups groups = best->program.decisions.groups;
    drop ? (void)groups.erase(groups.begin() + int64_t(index)) : (void)++groups[index].slices;
    (void)tryThese(whole, &groups);
  };
  for (bool found = true; found && tries < kMostTries;) {
    found = false;
    for (unsigned index = 0; index < surveyed.families().size() && tries < kMostTries; ++index) {
      if (surveyed.families()[index].canStay) {
        found |= improves([&] { toggle(index); });
      }
    }
    for (size_t index = 0; index < best->program.decisions.groups.size() && tries < kMostTries; ++index) {
      for (bool drop : {false, true}) {
        if (index < best->program.decisions.groups.size()) {
          found |= improves([&] { changeGroup(index, drop); });
        }
      }
    }
  }
}

LogicalResult Search::run(NpuProgram &program, std::vector<Refusal> &refused) {
  Stream scratch(chip, constants);
  FunctionEmission survey(function, scratch, surveyed, nullptr);
  observe(survey);
  if (failed(survey.run())) {
    refused = std::move(survey.refusals);
    return failure();
  }
  surveyed.settle(options.opt > 0);
  if (options.plan) {
    (void)follow(*options.plan);
  } else {
    for (double share : ArrayRef(kShares).take_front(options.opt > 1 ? std::size(kShares) : 1)) {
      (void)tryShare(share);
    }
    if (best && options.opt > 2) {
      refine();
    }
  }
  if (!best) {
    refused = std::move(refusals);
    return failure();
  }
  program = std::move(best->program);
  return success();
}

} // namespace tessera::npu
