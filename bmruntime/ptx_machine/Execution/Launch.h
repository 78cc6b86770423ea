//===- Launch.h - One execution of a kernel -------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_EXECUTION_LAUNCH_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_EXECUTION_LAUNCH_H

#include "bmruntime/ptx_machine/Execution/Counts.h"
#include "bmruntime/ptx_machine/Execution/Options.h"
#include "bmruntime/ptx_machine/Frontend/Program.h"
#include "bmruntime/ptx_machine/Memory/Memory.h"

#include <atomic>

namespace ptx {

/// An error that a GPU would report; ends the kernel.
struct Fault {
  enum Code : uint8_t { IllegalAddress, Misaligned, IllegalInstruction, LaunchFailed, Trap } code;
  std::string text;
};

/// Records when blocks release their writes and acquire those of other blocks, by one clock per launch.
class BlockOrder {
public:
  explicit BlockOrder(uint64_t blocks) : blocks(blocks) {}
  /// Records a fence of |block| at device scope.
  void fence(uint64_t block);
  /// Returns how often |block| has fenced.
  uint32_t fences(uint64_t block) const { return blocks[block].fences.load(std::memory_order_relaxed); }
  /// Returns true if |block| may rely on what |other| did after |fences| fences.
  bool isOrdered(uint64_t other, uint32_t fences, uint64_t block) const;

private:
  struct State {
    std::atomic<uint32_t> fences{0};
    std::vector<uint64_t> times;
  };
  mutable std::mutex mutex;
  uint64_t clock = 0;
  std::vector<State> blocks;
};

/// One execution of a kernel. Everything but |order| and |steps| is constant while it runs.
struct Launch {
  std::shared_ptr<const Kernel> kernel;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint32_t dynamicShared = 0;
  std::vector<uint8_t> parameters;

  std::vector<AllocationRef> allocations; ///< allocations that the kernel may use, sorted by address
  uint32_t sms = 1;

  // Set by execute().
  Options options;
  uint32_t id = 0; ///< number of the launch, from 1
  std::unique_ptr<BlockOrder> order;
  std::atomic<uint64_t> steps{0};
  std::atomic<bool> isCancelled{false};

  uint64_t blocks() const { return uint64_t(grid[0]) * grid[1] * grid[2]; }
  uint32_t threads() const { return block[0] * block[1] * block[2]; }
  uint32_t sharedBytes() const { return (kernel->sharedBytes + 15) / 16 * 16 + dynamicShared; }
};

} // namespace ptx

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_EXECUTION_LAUNCH_H
