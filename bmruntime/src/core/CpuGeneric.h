// SPDX-License-Identifier: Apache-2.0
//===- CpuGeneric.h - Float mode and clock of other machines --------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_CPUGENERIC_H
#define TESSERA_BMRUNTIME_SRC_CORE_CPUGENERIC_H

#include <cfenv>
#include <cstdint>
#include <ctime>
#include <elf.h>

namespace bmrt::core::cpu {

inline constexpr uint16_t kElfMachine = EM_NONE; // no code runs here

using FloatMode = int;

/// Only sets the rounding: the C library has no function that makes the machine keep denormals.
inline FloatMode setKernelFloatMode() {
  const FloatMode before = fegetround();
  fesetround(FE_TONEAREST);
  return before;
}
inline void restoreFloatMode(FloatMode mode) { fesetround(mode); }

inline uint64_t ticks() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec)) * 2;
}

inline void pause() {}

} // namespace bmrt::core::cpu

#endif // TESSERA_BMRUNTIME_SRC_CORE_CPUGENERIC_H
