//===- SharedRaces.h - Who touched a block's shared bytes ------------------===//
// SPDX-License-Identifier: Apache-2.0
// Two threads race if both touch a byte, one of them writing, and no barrier lies between. Barriers need not be of
// all warps: seen(w, v) is the time up to which warp w knows what warp v did.
#ifndef TESSERA_REGRESSION_CUDA_MACHINE_SHAREDRACES_H
#define TESSERA_REGRESSION_CUDA_MACHINE_SHAREDRACES_H

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
  /// All that |warps| (a bit each) did is known to each of them from now on.
  void synchronize(uint64_t warps);
  /// The threads of one warp know of each other.
  void synchronizeWarp(unsigned warp) { synchronize(uint64_t(1) << warp); }

  /// Notes an access. The result names the other thread, or is kNoRace.
  static constexpr unsigned kNoRace = ~0u;
  unsigned read(unsigned thread, uint64_t at, unsigned bytes);
  unsigned write(unsigned thread, uint64_t at, unsigned bytes);
  /// Atomics race with plain accesses only.
  unsigned atomic(unsigned thread, uint64_t at, unsigned bytes);

private:
  /// Of a word, or of a byte where threads have touched parts of the word.
  struct Cell {
    uint32_t writeTime = 0, readTime = 0;
    uint16_t writer = 0, reader = kNobody; ///< reader: the only one, or one of kMany, kNobody
    uint32_t readers = 0;                  ///< warps, a bit each, if they are many
    bool isAtomic = false;
    bool isSplit = false; ///< the bytes have cells of their own
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

#endif // TESSERA_REGRESSION_CUDA_MACHINE_SHAREDRACES_H
