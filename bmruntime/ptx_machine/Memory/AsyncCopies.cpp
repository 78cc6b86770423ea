//===- AsyncCopies.cpp - Pending cp.async copies --------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Memory/AsyncCopies.h"

namespace ptx {

void AsyncCopies::begin() {
  if (count != 0) { // the previous block ended without waiting
    std::fill(pending.begin(), pending.end(), uint16_t(0));
    count = 0;
  }
  for (Thread &each : threads) {
    each.open.clear();
    each.groups.clear();
  }
}

void AsyncCopies::issue(unsigned thread, const Copy &copy) {
  threads[thread].open.push_back(copy);
  for (unsigned word = copy.to / 4; word < (copy.to + copy.bytes + 3u) / 4; ++word) {
    ++pending[word];
  }
  ++count;
}

void AsyncCopies::commit(unsigned thread) {
  Thread &mine = threads[thread];
  mine.groups.push_back(std::move(mine.open));
  mine.open.clear();
}

void AsyncCopies::finish(const std::vector<Copy> &copies, std::vector<Copy> &done) {
  for (const Copy &each : copies) {
    for (unsigned word = each.to / 4; word < (each.to + each.bytes + 3u) / 4; ++word) {
      --pending[word];
    }
    --count;
    done.push_back(each);
  }
}

void AsyncCopies::take(unsigned thread, unsigned groups, bool all, std::vector<Copy> &done) {
  Thread &mine = threads[thread];
  while (mine.groups.size() > groups) {
    finish(mine.groups.front(), done);
    mine.groups.pop_front();
  }
  if (all) {
    finish(mine.open, done);
    mine.open.clear();
  }
}

bool AsyncCopies::isPending(uint64_t at, unsigned bytes) const {
  for (uint64_t word = at / 4; word < (at + bytes + 3) / 4; ++word) {
    if (pending[word] != 0) {
      return true;
    }
  }
  return false;
}

} // namespace ptx
