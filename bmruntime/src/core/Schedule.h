// SPDX-License-Identifier: Apache-2.0
//===- Schedule.h - Which steps of a stage may run at the same time -------===//
#ifndef BMRT_CORE_SCHEDULE_H
#define BMRT_CORE_SCHEDULE_H

#include "Memory.h"

#include <cstdint>

namespace bmrt::core {

struct StageProgram;
class ScheduleBuilder;

/// The steps of a stage's first subnet as tasks of those who carry them out: the host, agent 0, and queues of chips.
/// Each does its tasks in order, and a task waits for those of others that write what it reads or writes, or read what
/// it writes. Made once, for a model.
class Schedule {
public:
  struct Task {
    uint32_t agent = 0;
    uint32_t number = 0;      ///< among the agent's
    bool isExclusive = false; ///< nothing else runs meanwhile
    bool handOver = false;    ///< of a queue: others have something to do meanwhile
  };

  /// Stays empty where nothing could run at the same time: then steps run one after another, as they do where there is
  /// no memory for a schedule.
  void build(const StageProgram &stage);

  bool isEmpty() const { return tasks.size() == 0; }
  uint32_t agents() const { return agentCount; }
  /// An agent as steps name it (Plan.h): here they are numbered without gaps.
  uint32_t stepAgent(uint32_t agent) const { return agent == 0 ? 0 : chips[agent] + 1; }
  /// One for each step of the first subnet.
  const Array<Task> &getTasks() const { return tasks; }
  /// How many tasks |other| must have done before |task| begins.
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

#endif // BMRT_CORE_SCHEDULE_H
