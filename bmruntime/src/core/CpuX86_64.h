// SPDX-License-Identifier: Apache-2.0
//===- CpuX86_64.h - Float mode and clock of x86-64 -----------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_CPUX86_64_H
#define TESSERA_BMRUNTIME_SRC_CORE_CPUX86_64_H

#include <cstdint>
#include <elf.h>
#include <x86intrin.h>

namespace bmrt::core::cpu {

inline constexpr uint16_t kElfMachine = EM_X86_64;

using FloatMode = uint32_t;

inline FloatMode setKernelFloatMode() {
  const FloatMode before = _mm_getcsr();
  _mm_setcsr(0x1f80);
  return before;
}
inline void restoreFloatMode(FloatMode mode) { _mm_setcsr(mode); }

inline uint64_t ticks() { return __rdtsc(); }

inline void pause() { _mm_pause(); }

} // namespace bmrt::core::cpu

#endif // TESSERA_BMRUNTIME_SRC_CORE_CPUX86_64_H
