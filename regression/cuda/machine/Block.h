//===- Block.h - Threads that share memory ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_REGRESSION_CUDA_MACHINE_BLOCK_H
#define TESSERA_REGRESSION_CUDA_MACHINE_BLOCK_H

#include "regression/cuda/machine/AsyncCopies.h"
#include "regression/cuda/machine/Launch.h"
#include "regression/cuda/machine/SharedRaces.h"
#include "regression/cuda/machine/Warp.h"

namespace ptx {

/// Strong accesses (volatile, relaxed, acquire, release) do not race with each other, nor with atomics.
enum class Access : uint8_t { Read, Write, Atomic, StrongRead, StrongWrite };
inline bool reads(Access access) { return access != Access::Write && access != Access::StrongWrite; }
inline bool writes(Access access) { return access != Access::Read && access != Access::StrongRead; }
inline bool isStrong(Access access) { return access != Access::Read && access != Access::Write; }

/// The addresses of a warp instruction, one a lane; those of other lanes are not looked at.
struct Addresses {
  uint64_t lane[kLanes];
};

/// Where the bytes of each lane lie on the host.
struct Pointers {
  uint8_t *lane[kLanes];
};

/// A block in execution. It may be put aside between two instructions and go on later.
class Block {
public:
  Block(Launch &launch, Counts &counts);

  /// Begins block |index| of the grid.
  void begin(uint64_t index);
  /// Executes at most about |budget| warp instructions; true if the block has ended. Throws Fault.
  bool run(uint64_t budget);

  // What instructions call.
  /// Checks and counts the accesses of |mask|'s lanes, |bytes| each, and finds their bytes.
  void resolve(Warp &warp, Space space, const Addresses &addresses, Mask mask, unsigned bytes, Access access,
               Pointers &pointers);
  /// The same for rows that ldmatrix and cp.async name, which lie in one space for certain.
  void resolveShared(Warp &warp, const Addresses &addresses, Mask mask, unsigned bytes, Access access,
                     Pointers &pointers);
  void resolveGlobal(Warp &warp, const Addresses &addresses, Mask mask, unsigned bytes, Access access,
                     Pointers &pointers);
  /// Names kernel, line, block and thread before |what|.
  [[noreturn]] void fault(const Warp &warp, unsigned lane, const std::string &what,
                          Fault::Code code = Fault::IllegalAddress) const;
  /// Faults if lanes of |warp| are elsewhere.
  void requireConverged(const Warp &warp) const;
  /// Marks bytes of shared memory as written by |thread|, checked for races.
  void writeShared(Warp &warp, unsigned lane, uint64_t offset, const uint8_t *bytes, unsigned count);
  /// Begins copies of |whole| bytes each, of which |bytes| are read and the others zero.
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
    Mask warps = 0;     ///< that wait or have arrived
    unsigned votes = 0; ///< of bar.red: threads whose predicate is true
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
  uint64_t executed = 0; ///< instructions of this call of run()
  uint64_t order = 0;    ///< of warps: the seed's
};

} // namespace ptx

#endif // TESSERA_REGRESSION_CUDA_MACHINE_BLOCK_H
