// SPDX-License-Identifier: Apache-2.0
//===- Cpu.h - The machine for which the runtime is compiled --------------===//
//
// The only place that selects code by machine. A machine is a header that defines, in bmrt::core::cpu,
//
//   kElfMachine           e_machine of its code
//   FloatMode             state of the floating-point unit
//   setKernelFloatMode()  sets the mode of kernel_abi.h, i.e. round to nearest and keep denormals; returns the old one
//   restoreFloatMode()    sets a mode that setKernelFloatMode() returned
//   ticks()               a counter of 1 to 5 GHz, cheap enough to be read for every tile
//   pause()               lets a spinning thread yield the core's resources
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_CPU_H
#define TESSERA_BMRUNTIME_SRC_CORE_CPU_H

#if defined(__x86_64__)
#include "CpuX86_64.h"
#elif defined(__aarch64__)
#include "CpuAarch64.h"
#else
#include "CpuGeneric.h"
#endif

#endif // TESSERA_BMRUNTIME_SRC_CORE_CPU_H
