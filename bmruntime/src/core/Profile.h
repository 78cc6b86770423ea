// SPDX-License-Identifier: Apache-2.0
//===- Profile.h - Times of steps -----------------------------------------===//
#ifndef BMRT_CORE_PROFILE_H
#define BMRT_CORE_PROFILE_H

#include "Memory.h"
#include "Plan.h"
#include "Status.h"

#include <atomic>

namespace bmrt::core {

/// Nanoseconds of a clock that never goes back.
uint64_t nowNs();

/// Sums over all runs, and the events of the last one.
class Profile {
public:
  /// Starts from zero for |steps| steps, or stops and frees.
  bmrt_code_t enable(bool on, size_t steps, bmrt_status_t *status);
  bool isEnabled() const { return enabled; }

  void beginRun() { eventCount = 0; }
  /// |agent|: who carried the step out. From the threads of several agents at once; a step is one agent's.
  void record(uint32_t step, uint32_t agent, uint64_t beginNs, uint64_t endNs);
  const bmrt_step_time_t &time(uint32_t step) const { return times[step]; }

  /// Chrome's trace format, one complete event a step; a row for the host and one for each of |model|'s chips that had
  /// work meanwhile.
  bmrt_code_t writeTrace(const bmodel::ModelDef &model, const Plan &plan, const char *path,
                         bmrt_status_t *status) const;

private:
  struct Event {
    uint32_t step, agent;
    uint64_t begin, end;
  };

  bool enabled = false;
  Array<bmrt_step_time_t> times;
  Array<Event> events; ///< a loop may run a step more often than fits; what is beyond is left out
  std::atomic<size_t> eventCount = 0;
};

} // namespace bmrt::core

#endif // BMRT_CORE_PROFILE_H
