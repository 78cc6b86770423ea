// SPDX-License-Identifier: Apache-2.0
//===- CpuAarch64.h - Float mode and clock of AArch64 ---------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_CPUAARCH64_H
#define TESSERA_BMRUNTIME_SRC_CORE_CPUAARCH64_H

#include <cstdint>
#include <elf.h>

namespace bmrt::core::cpu {

inline constexpr uint16_t kElfMachine = EM_AARCH64;

using FloatMode = uint64_t; ///< the register FPCR

inline void restoreFloatMode(FloatMode mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode)); }

inline FloatMode setKernelFloatMode() {
  FloatMode before;
  __asm__ volatile("mrs %0, fpcr" : "=r"(before));
  restoreFloatMode(0);
  return before;
}

/// Counts at 2 GHz. The system counter counts slower, at a frequency that differs between machines.
inline uint64_t ticks() {
  uint64_t count, frequency;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
  __asm__("mrs %0, cntfrq_el0" : "=r"(frequency));
  return count * (2000000000u / frequency);
}

inline void pause() { __asm__ volatile("yield"); }

} // namespace bmrt::core::cpu

#endif // TESSERA_BMRUNTIME_SRC_CORE_CPUAARCH64_H
