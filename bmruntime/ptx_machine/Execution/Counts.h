//===- Counts.h - Costs of kernels ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_EXECUTION_COUNTS_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_EXECUTION_COUNTS_H

#include "bmruntime/ptx_machine/Frontend/Program.h"

#include <map>
#include <mutex>

namespace ptx {

/// The costs of one launch, or of one host thread's share of it.
struct Counts {
  uint64_t launches = 0, blocks = 0, warps = 0;
  std::vector<uint64_t> executed;               ///< how many warps executed each instruction
  uint64_t tensorProducts = 0;                  ///< multiply-adds of mma
  uint64_t loadSectors = 0, storeSectors = 0;   ///< 32-byte sectors that warp instructions request
  uint64_t dramSectors = 0;                     ///< distinct sectors of each launch; all other accesses hit in L2
  uint64_t sharedPasses = 0, bankConflicts = 0; ///< a conflict is a pass beyond those that the bytes need
  uint64_t barriers = 0;

  void add(const Counts &other);
};

/// Sums of counts by kernel name. Thread-safe.
class CountTable {
public:
  void add(const Kernel &kernel, const Counts &counts);
  std::string json() const;
  void clear();

private:
  struct Entry {
    Counts counts;
    uint64_t kinds[size_t(Kind::Count)] = {};
    std::map<std::string, uint64_t> opcodes;
    uint32_t registers = 0, sharedBytes = 0, localBytes = 0;
  };
  mutable std::mutex mutex;
  std::map<std::string, Entry> entries;
};

} // namespace ptx

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_EXECUTION_COUNTS_H
