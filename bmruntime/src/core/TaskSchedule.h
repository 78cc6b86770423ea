// SPDX-License-Identifier: Apache-2.0
//===- TaskSchedule.h - Concurrency of a stage's steps --------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_TASKSCHEDULE_H
#define TESSERA_BMRUNTIME_SRC_CORE_TASKSCHEDULE_H

#include "Memory.h"

#include <cstdint>

namespace bmrt::core {

class ScheduleBuilder;

/// The steps of a stage's first subnet as tasks of agents: the host (agent 0) and the queues of chips. Each agent
/// executes its tasks in order. A task waits for the tasks of other agents that write what it reads or writes, or read
/// what it writes. Built once per model by
/// buildSchedule; empty if the steps run one after another.
class TaskSchedule {
public:
  struct Task {
    uint32_t agent = 0;
    uint32_t number = 0;        ///< index among the tasks of the agent
    bool isExclusive = false;   ///< nothing else runs at the same time
    bool switchesAgent = false; ///< for queues: another agent has work to do at the same time
  };

  bool isEmpty() const { return tasks.size() == 0; }
  uint32_t agents() const { return agentCount; }
  /// Converts an agent to its number in steps (ExecutionPlan.h); agents of a schedule are numbered without gaps.
  uint32_t stepAgent(uint32_t agent) const { return agent == 0 ? 0 : chips[agent] + 1; }
  /// One task for each step of the first subnet.
  const Array<Task> &getTasks() const { return tasks; }
  /// Returns the number of tasks that |other| must have completed before |task| starts.
  uint32_t needs(uint32_t task, uint32_t other) const { return needed[task * agentCount + other]; }
  /// The tasks of |agent|, by number.
  uint32_t count(uint32_t agent) const { return first[agent + 1] - first[agent]; }
  uint32_t taskOf(uint32_t agent, uint32_t number) const { return order[first[agent] + number]; }

  static constexpr uint32_t kMostAgents = 16;

private:
  friend class ScheduleBuilder;

  uint32_t agentCount = 0;
  uint32_t chips[kMostAgents] = {};
  uint32_t first[kMostAgents + 1] = {};
  Array<Task> tasks;
  Array<uint32_t> needed, order;
};

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_TASKSCHEDULE_H
