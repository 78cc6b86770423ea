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
  /// Starts from zero for |steps| steps, or stops: what was recorded stays.
  bmrt_code_t enable(bool on, size_t steps, bmrt_status_t *status);
  bool isEnabled() const { return enabled; }
  bool hasTimes() const { return times.size() > 0; }

  void beginRun() { eventCount = enabled ? 0 : eventCount.load(); }
  /// |agent|: who carried the step out. From the threads of several agents at once; a step is one agent's.
  void record(uint32_t step, uint32_t agent, uint64_t beginNs, uint64_t endNs);
  const bmrt_step_time_t &time(uint32_t step) const { return times[step]; }

  /// What a chip times by itself within a step.
  struct Part {
    uint32_t layer; ///< of the step's ONNX nodes; UINT32_MAX: none
    bmrt_step_time_t time;
  };
  /// Part |index| of |step|, counted from 0 in each run. Without memory for it nothing is kept.
  void recordPart(uint32_t step, uint32_t index, uint32_t layer, uint64_t ns);
  const Array<Part> &partsOf(uint32_t step) const { return parts[step].all; }

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
  /// Of a step; as many as its first run has told.
  struct Parts {
    Array<Part> all;
  };

  Array<bmrt_step_time_t> times;
  Array<Parts> parts;  ///< by step
  Array<Event> events; ///< a loop may run a step more often than fits; what is beyond is left out
  std::atomic<size_t> eventCount = 0;
};

} // namespace bmrt::core

#endif // BMRT_CORE_PROFILE_H
