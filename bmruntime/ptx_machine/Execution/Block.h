//===- Block.h - A block of threads in execution --------------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_EXECUTION_BLOCK_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_EXECUTION_BLOCK_H

#include "bmruntime/ptx_machine/Execution/Launch.h"
#include "bmruntime/ptx_machine/Execution/Warp.h"
#include "bmruntime/ptx_machine/Memory/AsyncCopies.h"
#include "bmruntime/ptx_machine/Memory/SharedRaces.h"

namespace ptx {

/// Kinds of access. Strong accesses (volatile, relaxed, acquire, release) do not race with each other or with atomics.
enum class Access : uint8_t { Read, Write, Atomic, StrongRead, StrongWrite };
inline bool reads(Access access) { return access != Access::Write && access != Access::StrongWrite; }
inline bool writes(Access access) { return access != Access::Read && access != Access::StrongRead; }
inline bool isStrong(Access access) { return access != Access::Read && access != Access::Write; }

/// The addresses of a warp instruction, one per lane; those of inactive lanes are ignored.
struct Addresses {
  uint64_t lane[kLanes];
};

/// Host pointers to the bytes of each lane.
struct Pointers {
  uint8_t *lane[kLanes];
};

/// A block in execution. It may be suspended between two instructions and continue later.
class Block {
public:
  Block(Launch &launch, Counts &counts);

  /// Begins block |index| of the grid.
  void begin(uint64_t index);
  /// Executes about |budget| warp instructions at most. Returns true if the block has ended. Throws Fault.
  bool run(uint64_t budget);

  // Called by instructions.
  /// Checks and counts the accesses of |mask|'s lanes, |bytes| each, and sets |pointers| to their bytes.
  void resolve(Warp &warp, Space space, const Addresses &addresses, Mask mask, unsigned bytes, Access access,
               Pointers &pointers);
  /// As resolve(), for accesses whose space is known, e.g. of ldmatrix and cp.async.
  void resolveShared(Warp &warp, const Addresses &addresses, Mask mask, unsigned bytes, Access access,
                     Pointers &pointers);
  void resolveGlobal(Warp &warp, const Addresses &addresses, Mask mask, unsigned bytes, Access access,
                     Pointers &pointers);
  /// Throws a Fault whose text names kernel, line, block and thread before |what|.
  [[noreturn]] void fault(const Warp &warp, unsigned lane, const std::string &what,
                          Fault::Code code = Fault::IllegalAddress) const;
  /// Faults if any live lane of |warp| is at another instruction.
  void requireConverged(const Warp &warp) const;
  /// Writes |count| bytes of shared memory as lane |lane|, with a check for races.
  void writeShared(Warp &warp, unsigned lane, uint64_t offset, const uint8_t *bytes, unsigned count);
  /// Issues copies of |whole| bytes each, of which |bytes| are read and the rest is zero.
  void issueCopies(Warp &warp, const Addresses &to, const Addresses &from, const unsigned *bytes, Mask mask,
                   unsigned whole);
  void fence() { launch.order->fence(index); }

  Launch &launch;
  Counts &counts;
  const Kernel &kernel;
  uint64_t index = 0;
  uint32_t position[3] = {};
  AsyncCopies copies;
  SharedRaces races;

private:
  struct Barrier {
    unsigned arrived = 0, expected = 0;
    Mask warps = 0;     ///< warps that wait or have arrived
    unsigned votes = 0; ///< bar.red: threads whose predicate is true
  };

  void runWarp(Warp &warp, uint64_t budget);
  void branch(Warp &warp, const Instruction &instruction, Mask taken);
  void branchTable(Warp &warp, const Instruction &instruction, Mask taken);
  void exit(Warp &warp, Mask leaving);
  void wait(Warp &warp, const Instruction &instruction, Mask mask);
  void complete(Barrier &barrier);
  void finishReduction(Warp &warp, const Barrier &barrier);
  [[noreturn]] void deadlock() const;
  void fillSpecials(Warp &warp);
  [[noreturn]] void boundsFault(const Warp &warp, unsigned lane, uint64_t address, unsigned bytes, Access access) const;
  void checkAlignment(const Warp &warp, const Addresses &addresses, Mask mask, unsigned bytes) const;
  Allocation *findAllocation(uint64_t address);
  void checkWritten(Warp &warp, const Allocation &allocation, const Addresses &addresses, Mask mask, unsigned bytes);
  void checkGlobalRaces(Warp &warp, Allocation &allocation, const Addresses &addresses, Mask mask, unsigned bytes,
                        Access access);
  void globalInAllocation(Warp &warp, Allocation &allocation, const Addresses &addresses, Mask mask, unsigned bytes,
                          Access access);
  void countSectors(Allocation &allocation, const Addresses &addresses, Mask mask, unsigned bytes, Access access);
  void countBanks(const Addresses &addresses, Mask mask, unsigned bytes);
  void resolveLocal(Warp &warp, const Addresses &addresses, Mask mask, unsigned bytes, Access access,
                    Pointers &pointers);
  void resolveParameters(Warp &warp, const Addresses &addresses, Mask mask, unsigned bytes, Access access,
                         Pointers &pointers);

  std::vector<Warp> warps;
  std::unique_ptr<uint8_t[], void (*)(void *)> files;
  std::unique_ptr<uint8_t[], void (*)(void *)> shared;
  std::unique_ptr<uint8_t[], void (*)(void *)> local;
  WrittenBytes sharedWritten, localWritten;
  std::array<Barrier, 16> barriers;
  Allocation *lastAllocation = nullptr;
  uint64_t executed = 0; ///< instructions executed by the current call of run()
  uint64_t order = 0;    ///< start of the warps' turns, from the seed
};

} // namespace ptx

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_EXECUTION_BLOCK_H
