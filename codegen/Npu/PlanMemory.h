//===- PlanMemory.h - Addresses in local memory -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_PLANMEMORY_H
#define TESSERA_CODEGEN_NPU_PLANMEMORY_H

#include "codegen/Npu/Stream.h"

namespace tessera::npu {

/// Gives every buffer of a stream a rectangle: bytes of the lanes' memory, from the step at which its load begins to
/// the last one that uses it. Constants and inputs of the model are loaded as early as there is room for them, where
/// |prefetch|, but no earlier than the DMA has time for.
class MemoryPlan {
public:
  /// |inputs|: how many buffers of the caller are inputs. |apart|: what a tile stores and what the one behind it
  /// computes have no bytes in common, so that neither waits for the other.
  /// |across|: loads of an op may stand before the computation of the op before it.
  MemoryPlan(const Stream &stream, uint32_t inputs, bool prefetch, bool apart, bool across);

  /// A buffer for which there was no room, and the steps that need it.
  struct Misfit {
    uint64_t buffer;
    size_t first, last;
  };
  const std::vector<Misfit> &misfits() const { return failed; }

  /// The program: where there are no misfits.
  std::vector<Descriptor> commands() const;
  /// Most bytes of a lane that are in use at one step.
  uint64_t peak() const;

private:
  struct Range {
    uint64_t begin, end;
  };
  struct Use {
    size_t first = SIZE_MAX, last = 0;
    uint64_t offset = 0;
    bool movable = true; ///< its loads depend on nothing
    size_t loadAt = 0;   ///< where these stand
    bool used() const { return first != SIZE_MAX; }
  };

  void findUses();
  void touch(const Descriptor &command, size_t position, bool given);
  void place(uint64_t buffer);
  void prefetchAll();
  void hoist(Use &use, uint64_t bytes, size_t step);
  /// What none of the steps uses, in runs of |bytes| at least, from the lowest on.
  std::vector<Range> gapsOf(size_t first, size_t last, uint64_t bytes) const;
  void subtractStep(std::vector<Range> &gaps, size_t step, uint64_t bytes) const;
  uint64_t sizeOf(uint64_t buffer) const;
  bool isEarly(size_t step) const { return stream.steps[step].early || (across && stream.steps[step].isFree); }
  bool isGiven(const Descriptor &command) const;
  size_t positionOf(const Descriptor &load, size_t step) const;

  const Stream &stream;
  uint32_t inputs;
  bool apart, across;
  std::vector<Use> uses;                 ///< by buffer
  std::vector<std::vector<Range>> alive; ///< by step
  std::vector<double> begins;            ///< of the computation of each step, estimated
  double dmaFree = 0;                    ///< when the DMA has done what is known of it
  std::vector<Misfit> failed;
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_PLANMEMORY_H
