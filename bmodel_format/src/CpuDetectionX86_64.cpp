// SPDX-License-Identifier: Apache-2.0
//===- CpuDetectionX86_64.cpp - CPUID and permissions of x86-64 -----------===//
#include "CpuDetection.h"
#include "bmodel/cpu_features.h"

#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

using namespace bmodel;

namespace {

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  Registers r;
  if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx)) {
    return Registers();
  }
  return r;
}

/// Returns the register states that the operating system saves on a context switch (XCR0); 0 without OSXSAVE.
uint64_t enabledStates(const Registers &leaf1) {
  if (!(leaf1.ecx >> 27 & 1)) {
    return 0;
  }
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t(high) << 32 | low;
}

/// Asks Linux for permission to use the AMX tile registers. Returns false if it is denied.
bool requestTiles() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

} // namespace

uint64_t bmodel::detectCpuFeatures() {
  const Registers l1 = cpuid(1), l7 = cpuid(7), l71 = cpuid(7, 1), ext = cpuid(0x80000001u);
  const uint64_t states = enabledStates(l1);
  const bool ymm = (states & 0x6) == 0x6;
  const bool zmm = (states & 0xe6) == 0xe6;
  const bool tiles = (states & 0x60000) == 0x60000;
  uint64_t features = 0;
  auto add = [&](CpuFeature feature, unsigned reg, unsigned bit, bool usable = true) {
    if (usable && (reg >> bit & 1)) {
      features |= feature;
    }
  };
  add(BM_CPU_SSE2, l1.edx, 26);
  add(BM_CPU_SSE41, l1.ecx, 19);
  add(BM_CPU_SSE42, l1.ecx, 20);
  add(BM_CPU_MOVBE, l1.ecx, 22);
  add(BM_CPU_POPCNT, l1.ecx, 23);
  add(BM_CPU_BMI1, l7.ebx, 3);
  add(BM_CPU_BMI2, l7.ebx, 8);
  add(BM_CPU_LZCNT, ext.ecx, 5);
  add(BM_CPU_AVX, l1.ecx, 28, ymm);
  add(BM_CPU_FMA, l1.ecx, 12, ymm);
  add(BM_CPU_F16C, l1.ecx, 29, ymm);
  add(BM_CPU_AVX2, l7.ebx, 5, ymm);
  add(BM_CPU_AVXVNNI, l71.eax, 4, ymm);
  add(BM_CPU_AVX512F, l7.ebx, 16, zmm);
  add(BM_CPU_AVX512DQ, l7.ebx, 17, zmm);
  add(BM_CPU_AVX512IFMA, l7.ebx, 21, zmm);
  add(BM_CPU_AVX512CD, l7.ebx, 28, zmm);
  add(BM_CPU_AVX512BW, l7.ebx, 30, zmm);
  add(BM_CPU_AVX512VL, l7.ebx, 31, zmm);
  add(BM_CPU_AVX512VBMI, l7.ecx, 1, zmm);
  add(BM_CPU_AVX512VBMI2, l7.ecx, 6, zmm);
  add(BM_CPU_AVX512VNNI, l7.ecx, 11, zmm);
  add(BM_CPU_AVX512FP16, l7.edx, 23, zmm);
  add(BM_CPU_AVX512BF16, l71.eax, 5, zmm);
  add(BM_CPU_AMX_BF16, l7.edx, 22, tiles);
  add(BM_CPU_AMX_TILE, l7.edx, 24, tiles);
  add(BM_CPU_AMX_INT8, l7.edx, 25, tiles);
  return features;
}

uint64_t bmodel::permittedCpuFeatures(uint64_t features) {
  if (!(features & kX86Amx)) {
    return features;
  }
  static const bool tiles = requestTiles();
  return tiles ? features : features & ~kX86Amx;
}
