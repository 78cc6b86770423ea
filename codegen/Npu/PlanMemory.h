//===- PlanMemory.h - Addresses in local memory -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_PLANMEMORY_H
#define TESSERA_CODEGEN_NPU_PLANMEMORY_H

#include "codegen/Npu/Stream.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace tessera::npu {

/// What of a program may run at the same time as something else.
struct Overlap {
  bool prefetch = false; ///< constants and inputs are loaded as early as there is room for them
  bool apart = false;    ///< what a stage stores and what the one behind it computes have no bytes in common, so that
                         ///< neither waits for the other
  bool across = false;   ///< loads of an op may stand before the computation of the op before it
  bool held = false;     ///< what is stored keeps its place for as long as that takes, by an estimate, so that nothing
                         ///< computed meanwhile waits for it
};

/// Gives every buffer of a stream a rectangle: bytes of the lanes' memory, from the step at which its load begins to
/// the last one that uses it.
class MemoryPlan {
public:
  /// Finds when buffers are in use. |inputs|: how many buffers of the caller are inputs.
  MemoryPlan(const Stream &stream, uint32_t inputs, const Overlap &overlap);

  /// Both steps below, the second where it may be and all buffers have room.
  void run();
  /// Places all buffers, large ones first, each as low as there is room.
  void allocate();
  /// Takes addresses from elsewhere: of a buffer that is in use.
  void adopt(uint64_t buffer, uint64_t offset);
  /// Lets loads of constants and inputs begin as early as there is room for them, but no earlier than the DMA has time
  /// for; their buffers may move. For a plan whose buffers all have addresses.
  void hoistLoads();

  /// A buffer for which there was no room, and the steps that need it.
  struct Misfit {
    uint64_t buffer;
    size_t first, last;
  };
  const std::vector<Misfit> &misfits() const { return failed; }

  /// Calls visit(step, command) for each command in the order of the program.
  void eachInOrder(llvm::function_ref<void(size_t step, const Descriptor &command)> visit) const;
  /// The program: where there are no misfits.
  std::vector<Descriptor> commands() const;
  /// The same with its waits, and what the chip's scheduler makes of it.
  struct Scheduled {
    std::vector<Descriptor> commands;
    double cycles = 0;
  };
  Scheduled takeScheduled();
  /// Most bytes of a lane that are in use at one step.
  uint64_t peak() const;

  struct Use {
    size_t first = SIZE_MAX, last = 0; ///< steps during which it holds something
    uint64_t offset = 0;
    bool movable = true; ///< its loads depend on nothing
    size_t loadAt = 0;   ///< where these stand
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
  /// What none of the steps uses, in runs of |bytes| at least, from the lowest on.
  std::vector<Range> gapsOf(size_t first, size_t last, uint64_t bytes) const;
  static void subtractRange(std::vector<Range> &gaps, const Range &range, uint64_t bytes);
  void subtractStep(std::vector<Range> &gaps, size_t step, uint64_t bytes) const;
  uint64_t sizeOf(uint64_t buffer) const;
  bool hoistsLoads(size_t step) const {
    return stream.stages[step].hoisted || (overlap.across && stream.stages[step].isIndependent);
  }
  bool isGiven(const Descriptor &command) const;
  /// The buffer that a load fills, where that may move; 0: it may not.
  uint64_t movedBy(const Descriptor &load) const;
  size_t positionOf(const Descriptor &load, size_t step) const;

  const Stream &stream;
  uint32_t inputs;
  Overlap overlap;
  std::vector<Use> uses;                 ///< by buffer
  std::vector<std::vector<Range>> alive; ///< by step
  std::vector<double> begins;            ///< of the computation of each step, estimated
  double dmaFree = 0;                    ///< when the DMA has done what is known of it
  double dmaWaits = 0;                   ///< the same but for the stores of the last step
  std::vector<Misfit> failed;
  std::optional<Scheduled> scheduled; ///< where it is known
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_PLANMEMORY_H
