// SPDX-License-Identifier: Apache-2.0
//===- ScheduleBuilder.cpp - Finds the concurrency of a stage's steps ------===//
#include "ScheduleBuilder.h"

#include "Count.h"
#include "ExecutionPlan.h"
#include "bmodel/reader.h"

#include <algorithm>
#include <cinttypes>

using namespace bmrt::core;
using namespace bmodel;

namespace {

/// Beyond these limits a stage runs step by step, so that hostile files cannot keep a loader busy.
constexpr size_t kMostAccesses = 1 << 16, kMostComparisons = 1 << 24;
constexpr size_t kMostTasks = 4096;

/// The bytes that a task accesses. Constants and inputs are omitted, because nothing writes them.
struct Access {
  uint64_t area = 0; ///< areas do not overlap
  uint64_t begin = 0, end = 0;
  bool isWrite = false;

  bool conflictsWith(const Access &other) const {
    return area == other.area && begin < other.end && other.begin < end && (isWrite || other.isWrite);
  }
};

/// Computes the accesses of the steps of a stage.
class Accesses {
public:
  explicit Accesses(const StageProgram &program) : program(program), stage(*program.def) {}

  /// Calls |visit| with every access of a step of |subnet|, including those of subnets that it calls. Returns false if
  /// there are too many accesses.
  template <typename Visit>
  bool ofStep(uint32_t subnet, const StepDef &step, Visit visit);

private:
  template <typename Visit>
  void visitTensor(uint32_t slot, bool isWrite, Visit visit);
  template <typename Visit>
  void visitLaunch(uint32_t subnet, const LaunchDef &launch, Visit visit);
  template <typename Visit>
  void visitStream(uint32_t subnet, const StreamCall &call, Visit visit);
  template <typename Visit>
  bool ofSubnet(int64_t subnet, Visit visit);

  const StageProgram &program;
  const StageDef &stage;
  size_t visited = 0;
};

/// Returns the area of a root tensor: each workspace, the states of each memory and each buffer of the caller is a
/// separate area.
uint64_t areaOf(const TensorDef &root, uint32_t slot) {
  const uint64_t place = uint64_t(root.place()) << 32;
  return place | (root.place() == Place::Workspace ? root.place_index()
                  : root.place() == Place::State   ? uint32_t(root.chip() + 1)
                                                   : slot);
}

template <typename Visit>
void Accesses::visitTensor(uint32_t slot, bool isWrite, Visit visit) {
  const TensorDef &tensor = *stage.tensors()->Get(slot);
  const uint32_t rootSlot = tensor.view_of() < 0 ? slot : uint32_t(tensor.view_of());
  const TensorDef &root = *stage.tensors()->Get(rootSlot);
  ++visited;
  if (root.role() != TensorRole::Constant && root.role() != TensorRole::Input) {
    const uint64_t begin = root.offset() + (rootSlot == slot ? 0 : tensor.offset());
    visit(Access{areaOf(root, rootSlot), begin, begin + tensor.bytes(), isWrite});
  }
}

/// Visits the arguments of a launch as stated in its contract; without a contract, any argument may be written.
template <typename Visit>
void Accesses::visitLaunch(uint32_t subnet, const LaunchDef &launch, Visit visit) {
  const KernelContract &contract = program.subnets[subnet].contracts[launch.kernel()];
  for (uint32_t i = 0; i < count(launch.args()); ++i) {
    visitTensor(launch.args()->Get(i), !contract.isKnown || (contract.arg(i).access & BM_ARG_WRITE), visit);
  }
}

template <typename Visit>
void Accesses::visitStream(uint32_t subnet, const StreamCall &call, Visit visit) {
  for (uint32_t i = 0; i < count(call.inputs); ++i) {
    visitTensor(call.inputs->Get(i), false, visit);
  }
  for (uint32_t i = 0; i < count(call.outputs); ++i) {
    visitTensor(call.outputs->Get(i), true, visit);
  }
  const SubnetDef &def = *program.subnets[subnet].def;
  if (const WorkspaceDef *own = streamWorkspace(stage, def)) {
    visit(Access{uint64_t(Place::Workspace) << 32 | uint32_t(def.workspace()), 0, own->bytes(), true});
  }
}

template <typename Visit>
bool Accesses::ofSubnet(int64_t subnet, Visit visit) {
  const auto *plan = subnet < 0 ? nullptr : program.subnets[size_t(subnet)].def->plan();
  for (uint32_t i = 0; i < count(plan); ++i) {
    if (!ofStep(uint32_t(subnet), *plan->Get(i), visit)) {
      return false;
    }
  }
  return true;
}

template <typename Visit>
bool Accesses::ofStep(uint32_t subnet, const StepDef &step, Visit visit) {
  StreamCall call;
  if (++visited > kMostAccesses) {
    return false;
  }
  if (const LaunchDef *launch = step.op_as_LaunchDef()) {
    visitLaunch(subnet, *launch, visit);
  } else if (const CopyDef *copy = step.op_as_CopyDef()) {
    visitTensor(copy->from(), false, visit);
    visitTensor(copy->to(), true, visit);
  } else if (const ReadDimDef *read = step.op_as_ReadDimDef()) {
    visitTensor(read->from(), false, visit);
  } else if (const WriteDimDef *write = step.op_as_WriteDimDef()) {
    visitTensor(write->to(), true, visit);
  } else if (const CallSubnetDef *called = step.op_as_CallSubnetDef()) {
    return ofSubnet(called->subnet(), visit);
  } else if (const BranchDef *branch = step.op_as_BranchDef()) {
    visitTensor(branch->condition(), false, visit);
    return ofSubnet(branch->then_subnet(), visit) && ofSubnet(branch->else_subnet(), visit);
  } else if (const LoopDef *loop = step.op_as_LoopDef()) {
    for (int32_t slot : {loop->trip_count(), loop->condition(), loop->iteration()}) {
      if (slot >= 0) {
        visitTensor(uint32_t(slot), slot == loop->iteration(), visit);
      }
    }
    return ofSubnet(loop->body(), visit);
  } else if (findStreamCall(stage, step, call)) {
    visitStream(subnet, call, visit);
  }
  return true;
}

/// The agents of a step and of all steps that it calls, as a mask: bit 0 for the host, bit chip + 1 for a chip's queue,
/// and the highest bit if dims are set, which any step may read. Callees have higher indices.
class StepAgents {
public:
  static constexpr uint64_t kHost = 1, kSetsDims = uint64_t(1) << 63;
  static constexpr uint32_t kMostChips = 62;

  explicit StepAgents(const StageProgram &program) : program(program) {}

  bool build() {
    if (!subnets.allocate(program.subnets.size())) {
      return false;
    }
    for (size_t i = subnets.size(); i-- > 0;) {
      const auto *plan = program.subnets[i].def->plan();
      for (uint32_t k = 0; k < count(plan); ++k) {
        subnets[i] |= ofStep(uint32_t(i), *plan->Get(k));
      }
    }
    return true;
  }

  uint64_t ofStep(uint32_t subnet, const StepDef &step) const {
    switch (step.op_type()) {
    case StepOp::CallSubnetDef:
      return subnets[step.op_as_CallSubnetDef()->subnet()];
    case StepOp::BranchDef: {
      const BranchDef &branch = *step.op_as_BranchDef();
      return kHost | ofCallee(branch.then_subnet()) | ofCallee(branch.else_subnet());
    }
    case StepOp::LoopDef:
      return kHost | subnets[step.op_as_LoopDef()->body()];
    case StepOp::EvalDimDef:
    case StepOp::ReadDimDef:
      return kHost | kSetsDims;
    case StepOp::WriteDimDef:
      return kHost;
    case StepOp::CopyDef:
      return bit(chipOfCopy(*program.def, *step.op_as_CopyDef()));
    default:
      return program.subnets[subnet].usesQueue() ? bit(int32_t(program.subnets[subnet].def->chip())) : kHost;
    }
  }

  static uint64_t bit(int32_t chip) { return uint64_t(1) << (chip + 1); }

private:
  uint64_t ofCallee(int32_t subnet) const { return subnet < 0 ? 0 : subnets[size_t(subnet)]; }

  const StageProgram &program;
  Array<uint64_t> subnets;
};

/// The accesses of all tasks in one list.
struct TaskAccesses {
  Array<Access> list;
  Array<uint32_t> first; ///< first access by task, and the end of the list

  /// Returns false if there are too many accesses or memory has run out.
  bool build(const StageProgram &program) {
    const auto &plan = *program.def->subnets()->Get(0)->plan();
    if (!first.allocate(plan.size() + 1)) {
      return false;
    }
    size_t total = 0;
    Accesses counting(program), taking(program);
    for (const StepDef *step : plan) {
      if (!counting.ofStep(0, *step, [&](const Access &) { ++total; })) {
        return false;
      }
    }
    if (!list.allocate(total)) {
      return false;
    }
    total = 0;
    for (uint32_t i = 0; i < plan.size(); ++i) {
      (void)taking.ofStep(0, *plan.Get(i), [&](const Access &access) { list[total++] = access; });
      first[i + 1] = uint32_t(total);
    }
    return true;
  }

  bool conflict(uint32_t a, uint32_t b) {
    for (uint32_t i = first[a]; i < first[a + 1]; ++i) {
      for (uint32_t k = first[b]; k < first[b + 1]; ++k) {
        if (++comparisons > kMostComparisons || list[i].conflictsWith(list[k])) {
          return true; // also for pairs beyond the limit of comparisons
        }
      }
    }
    return false;
  }

  size_t comparisons = 0;
};

} // namespace

class bmrt::core::ScheduleBuilder {
public:
  ScheduleBuilder(const StageProgram &program, TaskSchedule &schedule)
      : program(program), schedule(schedule), agents(program), plan(program.def->subnets()->Get(0)->plan()) {}

  void build() {
    if (!tryBuild()) {
      schedule.tasks.clear();
    }
  }

private:
  /// Returns false if no steps could run concurrently, or if memory has run out.
  bool tryBuild() {
    return agents.build() && schedule.tasks.allocate(plan->size()) && assignAgents() && accesses.build(program) &&
           orderTasks() && findNeeds() && findAgentSwitches();
  }
  bool assignAgents();
  uint32_t agentOf(uint64_t mask);
  bool orderTasks();
  bool findNeeds();
  void need(uint32_t task, uint32_t earlier);
  bool findAgentSwitches();

  const StageProgram &program;
  TaskSchedule &schedule;
  StepAgents agents;
  TaskAccesses accesses;
  const flatbuffers::Vector<flatbuffers::Offset<StepDef>> *plan;
};

/// Returns the agent for a mask with one bit; adds a new agent for a chip seen for the first time.
uint32_t ScheduleBuilder::agentOf(uint64_t mask) {
  if (mask <= StepAgents::kHost) {
    return 0;
  }
  const auto chip = uint32_t(__builtin_ctzll(mask)) - 1;
  uint32_t agent = 1;
  while (agent < schedule.agentCount && schedule.chips[agent] != chip) {
    ++agent;
  }
  if (agent == schedule.agentCount && agent < TaskSchedule::kMostAgents) {
    schedule.chips[agent] = chip;
    ++schedule.agentCount;
  }
  return agent;
}

bool ScheduleBuilder::assignAgents() {
  schedule.agentCount = 1;
  for (uint32_t i = 0; i < plan->size(); ++i) {
    const uint64_t mask = agents.ofStep(0, *plan->Get(i));
    const bool isOne = (mask & (mask - 1)) == 0 && !(mask & StepAgents::kSetsDims);
    schedule.tasks[i].isExclusive = !isOne;
    schedule.tasks[i].agent = isOne ? agentOf(mask) : 0;
    if (schedule.tasks[i].agent == TaskSchedule::kMostAgents) {
      return false;
    }
  }
  return schedule.agentCount > 1;
}

bool ScheduleBuilder::orderTasks() {
  if (!schedule.needed.allocate(schedule.tasks.size() * schedule.agentCount) ||
      !schedule.order.allocate(schedule.tasks.size())) {
    return false;
  }
  for (TaskSchedule::Task &task : schedule.tasks) {
    task.number = schedule.first[task.agent + 1]++;
  }
  for (uint32_t a = 0; a < schedule.agentCount; ++a) {
    schedule.first[a + 1] += schedule.first[a];
  }
  for (uint32_t i = 0; i < schedule.tasks.size(); ++i) {
    schedule.order[schedule.first[schedule.tasks[i].agent] + schedule.tasks[i].number] = i;
  }
  return true;
}

/// Makes |task| wait for |earlier|, and thereby for everything that |earlier| waits for.
void ScheduleBuilder::need(uint32_t task, uint32_t earlier) {
  uint32_t *mine = &schedule.needed[task * schedule.agentCount];
  const TaskSchedule::Task &other = schedule.tasks[earlier];
  mine[other.agent] = std::max(mine[other.agent], other.number + 1);
  for (uint32_t a = 0; a < schedule.agentCount; ++a) {
    mine[a] = std::max(mine[a], schedule.needs(earlier, a));
  }
}

bool ScheduleBuilder::findNeeds() {
  for (uint32_t i = 0; i < schedule.tasks.size(); ++i) {
    const TaskSchedule::Task &task = schedule.tasks[i];
    for (uint32_t k = i; k-- > 0;) {
      const TaskSchedule::Task &other = schedule.tasks[k];
      const bool isKnown = schedule.needs(i, other.agent) > other.number;
      const bool isInOrder = task.agent == other.agent || task.isExclusive || other.isExclusive;
      if (!isKnown && (isInOrder || accesses.conflict(i, k))) {
        need(i, k);
      }
    }
  }
  return true;
}

/// Marks each queue task that a worker thread should execute, because the next task of another agent does not depend on
/// it. Returns false if all tasks form a single chain, i.e. if no task, of a queue or of the host, could overlap with
/// the next task of another agent.
bool ScheduleBuilder::findAgentSwitches() {
  bool found = false;
  for (uint32_t i = 0; i < schedule.tasks.size(); ++i) {
    TaskSchedule::Task &task = schedule.tasks[i];
    bool isSeen[TaskSchedule::kMostAgents] = {};
    for (uint32_t k = i + 1; k < schedule.tasks.size() && !task.isExclusive; ++k) {
      const uint32_t other = schedule.tasks[k].agent;
      if (other == task.agent || isSeen[other]) {
        continue;
      }
      isSeen[other] = true;
      if (schedule.needs(k, task.agent) <= task.number) {
        found = true;
        task.switchesAgent = task.agent != 0;
      }
    }
  }
  return found;
}

void bmrt::core::buildSchedule(const StageProgram &program, TaskSchedule &schedule) {
  const size_t steps = bmrt::core::count(program.def->subnets()->Get(0)->plan());
  bool hasQueues = false;
  for (const Device *device : program.devices) {
    hasQueues = hasQueues || device;
  }
  if (hasQueues && steps >= 2 && steps <= kMostTasks && program.devices.size() <= StepAgents::kMostChips) {
    ScheduleBuilder(program, schedule).build();
  }
}
