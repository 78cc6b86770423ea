//===- SharedRaces.h - Detects races on shared memory ---------------------===//
// SPDX-License-Identifier: Apache-2.0
// Two threads race if both access a byte, at least one of them writes, and no barrier orders the accesses. A barrier
// need not include all warps: seen(w, v) is the time up to which warp w is ordered after warp v.
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_MEMORY_SHAREDRACES_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_MEMORY_SHAREDRACES_H

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace ptx {

class SharedRaces {
public:
  SharedRaces(uint64_t bytes, unsigned warps, bool isOn);

  /// Forgets all accesses.
  void begin();
  /// Orders each of |warps| (one bit each) after everything that all of them did so far.
  void synchronize(uint64_t warps);
  /// Orders the threads of one warp.
  void synchronizeWarp(unsigned warp) { synchronize(uint64_t(1) << warp); }

  /// Notes an access. Returns the thread that it races with, or kNoRace.
  static constexpr unsigned kNoRace = ~0u;
  unsigned read(unsigned thread, uint64_t at, unsigned bytes);
  unsigned write(unsigned thread, uint64_t at, unsigned bytes);
  /// Atomics race with plain accesses only.
  unsigned atomic(unsigned thread, uint64_t at, unsigned bytes);

private:
  /// The last accesses to a word, or to a byte if threads have accessed parts of the word.
  struct Cell {
    uint32_t writeTime = 0, readTime = 0;
    uint16_t writer = 0, reader = kNobody; ///< reader: a thread, kMany or kNobody
    uint32_t readers = 0;                  ///< kMany: the readers' warps, one bit each
    bool isAtomic = false;
    bool isSplit = false; ///< the bytes have separate cells
  };
  static constexpr uint16_t kNobody = 0xffff, kMany = 0xfffe;

  bool knows(unsigned thread, unsigned other, uint32_t time) const;
  unsigned lastReader(const Cell &cell, unsigned thread) const;
  unsigned readCell(Cell &cell, unsigned thread);
  unsigned writeCell(Cell &cell, unsigned thread, bool isAtomic);
  template <class Visit>
  unsigned each(uint64_t at, unsigned bytes, Visit visit);

  bool isOn;
  unsigned warps;
  uint32_t now = 1;
  std::vector<uint32_t> seen; ///< [w][v]
  std::vector<Cell> words, parts;
};

} // namespace ptx

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_MEMORY_SHAREDRACES_H
