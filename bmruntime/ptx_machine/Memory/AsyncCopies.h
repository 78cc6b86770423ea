//===- AsyncCopies.h - Pending cp.async copies ----------------------------===//
// SPDX-License-Identifier: Apache-2.0
// The bytes of a copy are read when it is issued and written when its thread waits for it. A GPU may write them at any
// time in between.
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_MEMORY_ASYNCCOPIES_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_MEMORY_ASYNCCOPIES_H

#include <cstdint>
#include <deque>
#include <vector>

namespace ptx {

class AsyncCopies {
public:
  struct Copy {
    uint32_t to;
    uint8_t bytes;
    uint8_t data[16];
  };

  AsyncCopies(uint64_t sharedBytes, unsigned threads) : threads(threads), pending(sharedBytes / 4 + 4) {}

  void begin();
  void issue(unsigned thread, const Copy &copy);
  void commit(unsigned thread);
  /// Removes the copies of all but the last |groups| groups of |thread| and appends them to |done|. With |all|, takes
  /// the copies of all groups and also the uncommitted copies.
  void take(unsigned thread, unsigned groups, bool all, std::vector<Copy> &done);
  /// Returns true if a copy to any of the bytes is pending.
  bool isPending(uint64_t at, unsigned bytes) const;
  bool any() const { return count != 0; }

private:
  struct Thread {
    std::vector<Copy> open;
    std::deque<std::vector<Copy>> groups;
  };
  void finish(const std::vector<Copy> &copies, std::vector<Copy> &done);

  std::vector<Thread> threads;
  std::vector<uint16_t> pending; ///< number of pending copies to each word
  uint64_t count = 0;
};

} // namespace ptx

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_MEMORY_ASYNCCOPIES_H
