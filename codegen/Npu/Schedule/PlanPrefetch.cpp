//===- PlanPrefetch.cpp - Loads constants while the DMA is idle -----------===//
// SPDX-License-Identifier: Apache-2.0
//
// hoistLoads processes the program once and lets the loads of each step begin in free time shortly before. If the DMA
// is idle during a long computation earlier in the program, and is overloaded later, fillIdleTime loads data there that
// later computation waits for.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Schedule/PlanMemory.h"

#include "bmodel/npu/check.h"
#include "bmodel/npu/latency.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <numeric>
#include <utility>

using namespace bmodel::npu;

namespace tessera::npu {

/// Cycles of the commands, by step.
struct MemoryPlan::Work {
  struct Load {
    size_t step;
    uint64_t buffer; ///< buffer that it fills, if the load may move; else 0
    double cycles;
  };
  std::vector<Load> loads; ///< in the order of their steps
  std::vector<double> computes, stores;
  std::vector<double> cycles; ///< of all loads into a buffer that may move
  std::vector<size_t> step;   ///< first step for which the buffer is loaded
};

/// Estimated timing of the queues.
struct MemoryPlan::Timeline {
  std::vector<double> idle;  ///< idle time of the DMA between the loads and the stores of a step
  std::vector<double> waits; ///< time that the computation of a step waits for loads
};

MemoryPlan::Work MemoryPlan::workOf() const {
  Work work;
  work.cycles.assign(uses.size(), 0), work.step.assign(uses.size(), 0);
  for (size_t step = 0; step < stream.stages.size(); ++step) {
    const Stage &stage = stream.stages[step];
    for (const Descriptor &load : stage.loads) {
      uint64_t target = movedBy(load);
      double cycles = costOf(load, stream.chip).cycles;
      work.loads.push_back({step, target, cycles});
      if (target) {
        work.step[target] = work.cycles[target] > 0 ? work.step[target] : step;
        work.cycles[target] += cycles;
      }
    }
    work.computes.push_back(cyclesOf(stage.computes)), work.stores.push_back(cyclesOf(stage.stores));
  }
  return work;
}

MemoryPlan::Timeline MemoryPlan::timelineOf(const Work &work) const {
  size_t steps = stream.stages.size();
  std::vector<std::vector<const Work::Load *>> loads(steps);
  for (const Work::Load &load : work.loads) {
    size_t at = load.buffer ? uses[load.buffer].loadAt : load.step - (hoistsLoads(load.step) ? 1 : 0);
    loads[at].push_back(&load);
  }
  Timeline result{std::vector<double>(steps, 0), std::vector<double>(steps, 0)};
  std::vector<double> loaded(steps, 0);
  double dma = 0, compute = 0;
  auto waitFor = [&](double time, size_t step) {
    result.idle[step] += std::max(time - dma, 0.0), dma = std::max(dma, time);
  };
  for (size_t step = 0; step < steps; ++step) {
    for (const Work::Load *load : loads[step]) {
      if (!load->buffer && step > 0) {
        waitFor(compute, step - 1); // the target may be in use until then
      }
      dma += load->cycles, loaded[load->step] = dma;
    }
    result.waits[step] = std::max(loaded[step] - compute, 0.0);
    compute = std::max(compute, loaded[step]) + work.computes[step];
    if (work.stores[step] > 0) {
      waitFor(compute, step), dma += work.stores[step];
    }
  }
  return result;
}

/// Moves the loads of a buffer to |step| if the buffer fits from there on. Returns false if it does not.
bool MemoryPlan::moveLoad(uint64_t buffer, size_t step) {
  Use &use = uses[buffer];
  uint64_t bytes = sizeOf(buffer);
  auto isItsOwn = [&](Range range) { return range.begin == use.offset; };
  std::vector<Range> before = gapsOf(step, use.first - 1, bytes);
  for (size_t at = use.first; at <= use.last && !before.empty(); ++at) {
    std::vector<Range> others = alive[at];
    llvm::erase_if(others, isItsOwn);
    for (size_t i = 0; i < others.size() && !before.empty(); ++i) {
      subtractRange(before, others[i], bytes);
    }
  }
  if (before.empty()) {
    return false;
  }
  for (size_t at = use.first; at <= use.last; ++at) {
    llvm::erase_if(alive[at], isItsOwn);
  }
  auto tightest = llvm::min_element(before, [](Range a, Range b) { return a.end - a.begin < b.end - b.begin; });
  use.offset = tightest->begin, use.first = use.loadAt = step;
  occupy(buffer);
  return true;
}

MemoryPlan::Scheduled MemoryPlan::schedule() const {
  Scheduled result{commands()};
  assignWaits(result.commands, stream.chip);
  std::vector<Cost> costs;
  for (const Descriptor &command : result.commands) {
    costs.push_back(costOf(command, stream.chip));
  }
  for (const Span &span : bmodel::npu::schedule(result.commands.data(), costs.data(), costs.size(), stream.chip)) {
    result.cycles = std::max(result.cycles, span.end);
  }
  return result;
}

MemoryPlan::Scheduled MemoryPlan::takeScheduled() {
  Scheduled result = scheduled ? std::move(*scheduled) : schedule();
  scheduled.reset();
  return result;
}

/// Fills idle time of the DMA with loads that later computation waits for. Undoes all moves if the chip's scheduler
/// does not report a gain.
void MemoryPlan::fillIdleTime() {
  constexpr size_t kMostTried = 16; // loads tried for the same idle time
  const Work work = workOf();
  const Timeline before = timelineOf(work);
  std::vector<double> waited(before.waits.size() + 1, 0); // up to each step
  std::partial_sum(before.waits.begin(), before.waits.end(), waited.begin() + 1);
  std::vector<uint64_t> late; // sorted by the step at which they are loaded
  for (uint64_t buffer = 1; buffer < uses.size(); ++buffer) {
    const Use &use = uses[buffer];
    if (use.used() && use.movable && work.cycles[buffer] > 0 && waited[work.step[buffer] + 1] > waited[use.loadAt]) {
      late.push_back(buffer);
    }
  }
  llvm::stable_sort(late, [&](uint64_t a, uint64_t b) { return uses[a].loadAt < uses[b].loadAt; });
  const std::vector<Use> knownUses = uses;
  const std::vector<std::vector<Range>> knownAlive = alive;
  bool hasMoved = false;
  for (size_t step = 0; step < before.idle.size(); ++step) {
    double idle = before.idle[step];
    size_t tried = 0;
    for (size_t i = 0; i < late.size() && tried < kMostTried && idle > stream.chip.dmaLatency; ++i) {
      uint64_t buffer = late[i];
      if (!buffer || uses[buffer].loadAt <= step || work.cycles[buffer] > idle) {
        continue;
      }
      ++tried;
      if (moveLoad(buffer, step)) {
        idle -= work.cycles[buffer], late[i] = 0, hasMoved = true; // move each buffer only once
      }
    }
    llvm::erase(late, 0);
  }
  if (!hasMoved) {
    return;
  }
  Scheduled filled = schedule();
  std::vector<Use> movedUses = std::exchange(uses, knownUses);
  scheduled = schedule();
  if (filled.cycles < scheduled->cycles) {
    uses = std::move(movedUses), scheduled = std::move(filled);
  } else {
    alive = knownAlive;
  }
}

} // namespace tessera::npu
