//===- PlanMemory.h - Addresses in local memory -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_SCHEDULE_PLANMEMORY_H
#define TESSERA_CODEGEN_NPU_SCHEDULE_PLANMEMORY_H

#include "codegen/Npu/Stream/CommandStream.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace tessera::npu {

/// Kinds of overlap that a program may use.
struct Overlap {
  bool prefetch = false; ///< load constants and inputs as early as there is room for them
  /// Buffers that a stage stores from and buffers that the next stage computes in do not overlap, so neither waits for
  /// the other.
  bool disjointStores = false;
  bool crossLayerPrefetch = false; ///< loads of an op may begin before the computation of the previous op
  /// A buffer keeps its address until storing it is estimated to be complete, so no computation waits for the store.
  bool holdStores = false;
};

/// Assigns every buffer of a stream an address in the lanes' memory and a range of steps, from the beginning of its
/// load to its last use.
class MemoryPlan {
public:
  /// Finds the steps during which buffers are in use. |inputs|: number of the caller's buffers that are inputs.
  MemoryPlan(const CommandStream &stream, uint32_t inputs, const Overlap &overlap);

  /// Calls allocate() and then hoistLoads(), the latter if |overlap| allows it and all buffers fit.
  void run();
  /// Places all buffers, large ones first, each at the lowest free address.
  void allocate();
  /// Sets the address of a buffer that is in use to one assigned elsewhere.
  void adopt(uint64_t buffer, uint64_t offset);
  /// Moves loads of constants and inputs to the earliest step at which they fit and the DMA has time. Their buffers may
  /// move. Requires that all buffers have addresses.
  void hoistLoads();

  /// A buffer that does not fit, and the steps that need it.
  struct Misfit {
    uint64_t buffer;
    size_t first, last;
  };
  const std::vector<Misfit> &misfits() const { return failed; }

  /// Calls visit(step, command) for each command in program order. |step|: the step that the command belongs to.
  void eachInOrder(llvm::function_ref<void(size_t step, const Descriptor &command)> visit) const;
  /// Returns the program. Requires that there are no misfits.
  std::vector<Descriptor> commands() const;
  /// The program with waits, and its duration according to the chip's scheduler.
  struct Scheduled {
    std::vector<Descriptor> commands;
    double cycles = 0;
  };
  Scheduled takeScheduled();
  /// Returns the maximum number of bytes per lane in use at one step.
  uint64_t peak() const;

  struct Use {
    size_t first = SIZE_MAX, last = 0; ///< steps during which it holds data
    uint64_t offset = 0;
    bool movable = true; ///< all of its loads are independent of other commands
    size_t loadAt = 0;   ///< step at which its loads stand
    bool used() const { return first != SIZE_MAX; }
  };
  const std::vector<Use> &buffers() const { return uses; } ///< by number

private:
  struct Range {
    uint64_t begin, end;
  };

  struct Work;
  struct Timeline;
  Work workOf() const;
  Timeline timelineOf(const Work &work) const;
  bool moveLoad(uint64_t buffer, size_t step);
  void fillIdleTime();
  Scheduled schedule() const;

  void findUses();
  std::vector<size_t> lastStepsBesideStores() const;
  void touch(const Descriptor &command, size_t position, bool given);
  void place(uint64_t buffer);
  void occupy(uint64_t buffer);
  double cyclesOf(const std::vector<Descriptor> &commands) const;
  void hoist(Use &use, uint64_t bytes, size_t step);
  /// Returns the address ranges of at least |bytes| that are free during all of the steps, lowest first.
  std::vector<Range> gapsOf(size_t first, size_t last, uint64_t bytes) const;
  static void subtractRange(std::vector<Range> &gaps, const Range &range, uint64_t bytes);
  void subtractStep(std::vector<Range> &gaps, size_t step, uint64_t bytes) const;
  uint64_t sizeOf(uint64_t buffer) const;
  bool hoistsLoads(size_t step) const {
    return stream.stages[step].hoisted || (overlap.crossLayerPrefetch && stream.stages[step].isIndependent);
  }
  bool isGiven(const Descriptor &command) const;
  /// Returns the buffer that a load fills if the load may move, else 0.
  uint64_t movedBy(const Descriptor &load) const;
  size_t positionOf(const Descriptor &load, size_t step) const;

  const CommandStream &stream;
  uint32_t inputs;
  Overlap overlap;
  std::vector<Use> uses;                 ///< by buffer
  std::vector<std::vector<Range>> alive; ///< used address ranges, by step
  std::vector<double> begins;            ///< estimated begin of the computation of each step
  double dmaFree = 0;                    ///< time at which the DMA has finished all commands so far
  double dmaWaits = 0;                   ///< likewise, without the stores of the last step
  std::vector<Misfit> failed;
  std::optional<Scheduled> scheduled; ///< computed in advance, if known
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_SCHEDULE_PLANMEMORY_H
