// SPDX-License-Identifier: Apache-2.0
//===- Interrupt.h - Cancellation of runs ---------------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_INTERRUPT_H
#define TESSERA_BMRUNTIME_SRC_CORE_INTERRUPT_H

#include "Cpu.h"
#include "Status.h"

#include <atomic>

namespace bmrt::core {

/// The cancellation flag of a run. It is checked between steps, between the tiles of a launch and between the commands
/// of a chip.
class Interrupt {
public:
  /// Requests cancellation. May be called from any thread and from signal handlers.
  void request() { requested.store(true, std::memory_order_relaxed); }
  /// Starts a run; discards earlier requests.
  void begin() {
    requested.store(false, std::memory_order_relaxed);
    lastPoll = poll ? cpu::ticks() : 0;
  }
  bool isRequested() const { return requested.load(std::memory_order_relaxed); }

  /// Calls the poll function if it is due; returns true if the run should stop. Only for the running thread.
  bool check() {
    if (poll && cpu::ticks() - lastPoll > kPollTicks) {
      lastPoll = cpu::ticks();
      if (poll(pollUser)) {
        request();
      }
    }
    return isRequested();
  }

  void setPoll(bmrt_poll_t newPoll, void *user) {
    poll = newPoll;
    pollUser = user;
  }

private:
  /// About 30 to 60 ms: the counter runs at the base clock of the CPU, or in units of half a nanosecond.
  static constexpr uint64_t kPollTicks = uint64_t(1) << 27;

  std::atomic<bool> requested = false;
  static_assert(std::atomic<bool>::is_always_lock_free, "signal handlers write it");
  bmrt_poll_t poll = nullptr;
  void *pollUser = nullptr;
  uint64_t lastPoll = 0;
};

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_INTERRUPT_H
