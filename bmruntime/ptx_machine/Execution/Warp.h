//===- Warp.h - 32 lanes and their registers ------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_BMRUNTIME_PTX_MACHINE_EXECUTION_WARP_H
#define TESSERA_BMRUNTIME_PTX_MACHINE_EXECUTION_WARP_H

#include "bmruntime/ptx_machine/Frontend/Program.h"

#include <cstring>

namespace ptx {

class Block;

/// A warp in execution. Diverged lanes wait at their program counters; the lanes at the lowest counter continue, so
/// that branches reconverge where they meet.
class Warp {
public:
  template <class T>
  T *reg(uint32_t offset) {
    return reinterpret_cast<T *>(file + offset);
  }
  Mask &pred(uint32_t offset) { return *reinterpret_cast<Mask *>(file + offset); }

  /// Stores the lanes of |mask|.
  template <class T>
  void write(uint32_t offset, const T *values, Mask mask) {
    T *to = reg<T>(offset);
    if (mask == kAllLanes) {
      std::memcpy(to, values, kLanes * sizeof(T));
      return;
    }
    for (unsigned i = 0; i < kLanes; ++i) {
      to[i] = (mask >> i & 1) ? values[i] : to[i];
    }
  }
  void writePred(uint32_t offset, Mask values, Mask mask) {
    Mask &to = pred(offset);
    to = (to & ~mask) | (values & mask);
  }

  bool isConverged() const { return active == alive; }
  unsigned thread(unsigned lane) const { return index * kLanes + lane; }

  char *file = nullptr;
  Block *block = nullptr;
  unsigned index = 0;
  const Instruction *at = nullptr; ///< the current instruction
  Mask all = 0;                    ///< lanes that hold threads
  Mask alive = 0;                  ///< those that have not exited
  Mask active = 0;                 ///< those at |pc|
  Mask parked = 0;                 ///< those that wait at a barrier
  uint32_t pc = 0;
  uint32_t limit = 0; ///< the lowest counter of other lanes
  uint32_t counters[kLanes] = {};
  int barrier = -1; ///< at which |parked| wait

  /// Activates the lanes at the lowest counter. Returns false if all lanes wait or have exited.
  bool regroup();
  /// Sets the counters of the lanes of |mask| to |counter|.
  void settle(Mask mask, uint32_t counter) {
    for (Mask rest = mask; rest != 0; rest &= rest - 1) {
      counters[__builtin_ctz(rest)] = counter;
    }
  }
};

} // namespace ptx

#endif // TESSERA_BMRUNTIME_PTX_MACHINE_EXECUTION_WARP_H
