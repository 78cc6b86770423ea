// SPDX-License-Identifier: Apache-2.0
//===- Profile.h - Times of steps -----------------------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_PROFILE_H
#define TESSERA_BMRUNTIME_SRC_CORE_PROFILE_H

#include "ExecutionPlan.h"
#include "Memory.h"
#include "Status.h"

#include <atomic>

namespace bmrt::core {

/// Returns the time of a monotonic clock in nanoseconds.
uint64_t nowNs();

/// Times of steps, summed over all runs, and the events of the last run.
class Profile {
public:
  /// Starts profiling |steps| steps from zero, or stops it and keeps the recorded times.
  bmrt_code_t enable(bool on, size_t steps, bmrt_status_t *status);
  bool isEnabled() const { return enabled; }
  bool hasTimes() const { return times.size() > 0; }

  void beginRun() { eventCount = enabled ? 0 : eventCount.load(); }
  /// Records a step of |agent|. Several agents may call this at the same time; each step belongs to one agent.
  void record(uint32_t step, uint32_t agent, uint64_t beginNs, uint64_t endNs);
  const bmrt_step_time_t &time(uint32_t step) const { return times[step]; }

  /// A part of a step that the chip times separately.
  struct Part {
    uint32_t layer; ///< index into the step's ONNX nodes; UINT32_MAX: none
    bmrt_step_time_t time;
  };
  /// Records part |index| of |step|, counted from 0 in each run. Drops the part if memory has run out.
  void recordPart(uint32_t step, uint32_t index, uint32_t layer, uint64_t ns);
  const Array<Part> &partsOf(uint32_t step) const { return parts[step].all; }

  /// Writes Chrome's trace format: one complete event per step, one row for the host and one for each of |model|'s
  /// chips that did work.
  bmrt_code_t writeTrace(const bmodel::ModelDef &model, const ExecutionPlan &plan, const char *path,
                         bmrt_status_t *status) const;

private:
  struct Event {
    uint32_t step, agent;
    uint64_t begin, end;
  };

  bool enabled = false;
  /// The parts of a step; the first run determines their number.
  struct Parts {
    Array<Part> all;
  };

  Array<bmrt_step_time_t> times;
  Array<Parts> parts;  ///< by step
  Array<Event> events; ///< limited: later events of a step that a loop runs very often are dropped
  std::atomic<size_t> eventCount = 0;
};

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_PROFILE_H
