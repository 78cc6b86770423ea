//===- ScheduleSearch.cpp - Search for the fastest schedule ---------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Schedule/ScheduleSearch.h"

#include "codegen/Npu/Decisions/ChooseForms.h"
#include "codegen/Npu/Emission/FunctionEmission.h"

using namespace mlir;

namespace tessera::npu {

/// Maximum number of schedules that a search tries.
static constexpr unsigned kMostTries = 96;
/// Shares of local memory that resident values may take. The rest is left for values that stay slice by slice.
static constexpr double kShares[] = {0.75, 0.5, 0.25, 0.0};

void LayerSchedule::append(const LayerSchedule &other, uint32_t first) {
  for (LayerSchedule::ResidentValue stay : other.whole) {
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

/// Changes a plan in which buffers did not fit: more slices, fewer resident values, or else fewer tiles at once.
/// Returns false if nothing can be changed.
static bool makeRoom(ValuePlan &plan, GroupPlan &groups, ArrayRef<MemoryPlan::Misfit> misfits,
                     const CommandStream &stream) {
  std::set<uint32_t> crowded;
  for (const MemoryPlan::Misfit &each : misfits) {
    for (size_t step = each.first; step <= each.last; ++step) {
      crowded.insert(stream.stages[step].layer);
    }
  }
  if (groups.refine(crowded)) {
    return true;
  }
  bool changed = false;
  for (const MemoryPlan::Misfit &each : misfits) {
    uint32_t first = stream.stages[each.first].layer, last = stream.stages[each.last].layer;
    if (plan.drop(first, last)) {
      changed = true;
      continue;
    }
    for (uint32_t op = first; op <= last; ++op) {
      changed = changed || !plan.isSingleBuffered(op);
      plan.useSingleBuffer(op);
    }
  }
  return changed;
}

/// Returns the approximate number of schedules that run() will try.
size_t ScheduleSearch::expectedTries() const {
  return options.plan ? 1 : options.opt > 2 ? kMostTries : options.opt > 1 ? std::size(kShares) : 1;
}

/// The survey is the first part of the progress, each try another one. Repeated emission within a try is not counted.
void ScheduleSearch::observe(FunctionEmission &emitter) const {
  if (options.progress) {
    emitter.progress = [this](size_t done, size_t total) {
      const size_t part = tries + 1;
      options.progress(done, total, part, std::max(part, expectedTries() + 1));
    };
  }
}

/// Emits the commands of a plan. Changes the plan until all buffers fit.
LogicalResult ScheduleSearch::emit(ValuePlan &plan, GroupPlan &groups, Trial &trial) {
  while (true) {
    groups.recheck();
    placeOutside(plan, groups);
    trial.stream = std::make_unique<CommandStream>(chip, constants);
    CommandStream &stream = *trial.stream;
    FunctionEmission emitter(function, stream, plan, &groups);
    bool isChanged = false;
    emitter.spillUntilFits = [&](uint32_t layer) {
      bool isDropped = plan.drop(layer, layer);
      isChanged = isChanged || isDropped;
      return isDropped;
    };
    observe(emitter);
    if (failed(emitter.run())) {
      unsupportedOps = std::move(emitter.unsupportedOps);
      return failure();
    }
    if (isChanged) {
      continue;
    }
    Assembly result = assemble(stream, function.getNumArguments(), options.opt);
    if (result.misfits.empty()) {
      NpuProgram &program = trial.program;
      program.commands = std::move(result.commands), program.localPeak = result.localPeak, trial.cycles = result.cycles;
      program.layers = stream.layers, trial.overlap = result.overlap;
      program.sizes.workspace = plan.workspaceBytes, program.workspaceLowerBound = plan.workspaceLowerBound;
      return success();
    }
    if (!makeRoom(plan, groups, result.misfits, stream)) {
      unsupportedOps.push_back(rejectionOf(result.misfits, plan, stream));
      return failure();
    }
  }
}

LogicalResult ScheduleSearch::tryPlan(const ValuePlan &plan, const Groups *wanted) {
  if (wanted) {
    return tryGroups(plan, GroupPlan(plan, chip, *wanted));
  }
  GroupPlan groups(plan, chip);
  LogicalResult result = groups.hasParts() ? tryGroups(plan, GroupPlan(plan, chip, /*parts=*/false)) : failure();
  return success(succeeded(tryGroups(plan, groups)) || succeeded(result));
}

LogicalResult ScheduleSearch::tryGroups(const ValuePlan &chosen, const GroupPlan &wanted) {
  ++tries;
  ValuePlan plan = chosen;
  GroupPlan groups(plan, wanted);
  Trial trial;
  if (failed(emit(plan, groups, trial))) {
    return failure();
  }
  if (!best || trial.cycles < best->cycles) {
    trial.schedule = LocalSchedule(plan, groups);
    trial.program.layerSchedule = describe(plan, trial.schedule);
    trial.program.preserved = options.preserveLayers ? preservedValues(function, plan) : std::vector<PreservedValue>();
    best = std::move(trial);
  }
  return success();
}

LogicalResult ScheduleSearch::tryShare(double share) {
  ValuePlan plan = *surveyed;
  plan.choose(share);
  double before = best ? best->cycles : INFINITY;
  LogicalResult result = tryPlan(plan, nullptr);
  if (best && best->cycles < before) {
    best->share = share;
  }
  return result;
}

LogicalResult ScheduleSearch::tryThese(ArrayRef<unsigned> whole, const Groups *groups) {
  ValuePlan plan = *surveyed;
  plan.choose(whole);
  return tryPlan(plan, groups);
}

LogicalResult ScheduleSearch::reject(const Twine &why) {
  unsupportedOps.push_back({nullptr, ("the plan " + why).str(), /*ofPlan=*/true});
  return failure();
}

/// Rejects a plan whose layer names do not match, because it was made for another model.
LogicalResult ScheduleSearch::checkNames(const LayerSchedule &layerSchedule) {
  for (const auto &[layer, name] : layerSchedule.names) {
    std::string own = isOwn(layer) ? nameOfLayer(*surveyed, layer - options.firstLayer) : name;
    if (own != name) {
      return reject("names '" + name + "' as layer " + Twine(layer) + ", which is '" + own +
                    "': the plan was made for another model, chip or version");
    }
  }
  return success();
}

/// Returns the alias sets of the values that stay whole in a plan. The error says what is wrong with the plan.
llvm::Expected<std::vector<unsigned>> ScheduleSearch::findAliasSets(const LayerSchedule &layerSchedule) const {
  std::vector<unsigned> whole;
  for (const LayerSchedule::ResidentValue &stay : layerSchedule.whole) {
    if (!isOwn(stay.first)) {
      continue; // layer of another stream
    }
    auto matches = [&](unsigned index) {
      const ValuePlan::AliasSet &aliasSet = surveyed->aliasSets()[index];
      return aliasSet.residency.isPossible && aliasSet.first + options.firstLayer == stay.first &&
             aliasSet.last + options.firstLayer == stay.last && !llvm::is_contained(whole, index);
    };
    auto aliasSets = llvm::seq<unsigned>(0, unsigned(surveyed->aliasSets().size()));
    auto found = llvm::find_if(aliasSets, matches);
    if (found == aliasSets.end()) {
      return llvm::createStringError("keeps a value resident from layer " + Twine(stay.first) + " to " +
                                     Twine(stay.last) +
                                     ", but no value that can be resident is first written and last read there");
    }
    whole.push_back(*found);
  }
  return whole;
}

/// Applies the decisions of a plan unchanged, and fails if they do not fit.
LogicalResult ScheduleSearch::follow(const LayerSchedule &layerSchedule) {
  if (failed(checkNames(layerSchedule))) {
    return failure();
  }
  llvm::Expected<std::vector<unsigned>> whole = findAliasSets(layerSchedule);
  if (!whole) {
    return reject(llvm::toString(whole.takeError()));
  }
  uint32_t begin = options.firstLayer;
  Groups groups;
  for (const LayerSchedule::Group &group : layerSchedule.groups) {
    if (isOwn(group.first)) {
      groups.push_back({group.first - begin, group.last - begin, group.slices});
    }
  }
  ValuePlan plan = *surveyed;
  plan.choose(*whole);
  GroupPlan checked(plan, chip, groups);
  for (const LayerSchedule::Group &group : groups) {
    if (checked.groups().size() < groups.size() && !checked.at(group.first)) {
      return reject("has a group of layers " + Twine(group.first + begin) + " to " + Twine(group.last + begin) +
                    " in " + Twine(group.slices) + " slices, which cannot run slice by slice or does not fit");
    }
  }
  return tryThese(*whole, &groups);
}

/// Returns true if an attempt finds a faster program. Errors of failed attempts are dropped once there is a program.
bool ScheduleSearch::improves(llvm::function_ref<void()> attempt) {
  double before = best ? best->cycles : INFINITY;
  std::vector<UnsupportedOp> known = std::move(unsupportedOps);
  attempt();
  unsupportedOps = best ? std::vector<UnsupportedOp>() : std::move(known);
  return best && best->cycles < before;
}

/// The estimate for a single convolution cannot decide whether quantising a picture is faster in the convolution or in
/// front of it, because that depends on what else moves and computes at that time. Therefore the alternative is tried
/// as well, with the same share of local memory.
void ScheduleSearch::tryFormsOfInputs() {
  std::vector<FormsOfInputs> tried{formsOfInputs(function)};
  FormsOfInputs fastest = tried.front();
  for (bool fuses : {true, false}) {
    fuseInputs(function, chip, fuses);
    if (FormsOfInputs forms = formsOfInputs(function); !llvm::is_contained(tried, forms)) {
      tried.push_back(forms);
      ValuePlan before = *surveyed;
      surveyed.emplace(function, chip);
      std::vector<UnsupportedOp> rejected;
      bool isFaster = succeeded(surveyForms(rejected)) &&
                      improves([&] { options.plan ? (void)follow(*options.plan) : (void)tryShare(best->share); });
      isFaster ? (void)(fastest = forms) : (void)surveyed.emplace(std::move(before));
    }
    setForms(fastest);
  }
}

/// Changes one decision at a time as long as that makes the program faster.
void ScheduleSearch::refine() {
  auto toggle = [&](unsigned index) {
    std::vector<unsigned> whole = best->schedule.resident;
    auto found = llvm::find(whole, index);
    found == whole.end() ? whole.push_back(index) : (void)whole.erase(found);
    (void)tryThese(whole, nullptr);
  };
  auto changeGroup = [&](size_t index, bool drop) {
    std::vector<unsigned> whole = best->schedule.resident;
    Groups groups = best->program.layerSchedule.groups;
    drop ? (void)groups.erase(groups.begin() + int64_t(index)) : (void)++groups[index].slices;
    (void)tryThese(whole, &groups);
  };
  for (bool found = true; found && tries < kMostTries;) {
    found = false;
    for (unsigned index = 0; index < surveyed->aliasSets().size() && tries < kMostTries; ++index) {
      if (surveyed->aliasSets()[index].residency.isPossible) {
        found |= improves([&] { toggle(index); });
      }
    }
    for (size_t index = 0; index < best->program.layerSchedule.groups.size() && tries < kMostTries; ++index) {
      for (bool drop : {false, true}) {
        if (index < best->program.layerSchedule.groups.size()) {
          found |= improves([&] { changeGroup(index, drop); });
        }
      }
    }
  }
}

LogicalResult ScheduleSearch::surveyForms(std::vector<UnsupportedOp> &rejected) {
  auto watch = [&](FunctionEmission &emitter) { observe(emitter); };
  return survey(function, constants, chip, *surveyed, options.opt > 0, watch, rejected);
}

LogicalResult ScheduleSearch::run(NpuProgram &program, std::vector<UnsupportedOp> &rejected) {
  eraseSchedule(function);
  if (failed(surveyForms(rejected))) {
    return failure();
  }
  if (options.plan) {
    (void)follow(*options.plan);
  } else {
    for (double share : ArrayRef(kShares).take_front(options.opt > 1 ? std::size(kShares) : 1)) {
      (void)tryShare(share);
    }
  }
  if (options.opt > 1 && (best || options.plan)) {
    tryFormsOfInputs();
  }
  if (best && options.opt > 2 && !options.plan) {
    refine();
  }
  if (!best) {
    rejected = std::move(unsupportedOps);
    return failure();
  }
  writeSchedule(function, *surveyed, best->schedule, options.opt);
  if (options.observeIr) {
    options.observeIr(function->getParentOfType<ModuleOp>(), "emit-npu-schedule");
  }
  if (failed(finishStream(function, *best->stream, best->overlap, best->program.commands, options.observeIr))) {
    return failure();
  }
  program = std::move(best->program);
  return success();
}

} // namespace tessera::npu
