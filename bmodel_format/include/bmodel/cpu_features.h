// SPDX-License-Identifier: Apache-2.0
//===- cpu_features.h - Which x86 features a CPU has ----------------------===//
//
// Used by the compiler to choose a variant and by the loader to refuse code this CPU cannot run.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_CPU_FEATURES_H
#define BMODEL_CPU_FEATURES_H

#include <cstddef>
#include <cstdint>

namespace bmodel {

/// One constant per feature, e.g. BM_CPU_AVX2, to be or-ed into SubnetDef.cpu_features.
enum CpuFeature : uint64_t {
#define BM_CPU_FEATURE(bit, id, name) BM_CPU_##id = uint64_t(1) << bit,
#include "bmodel/cpu_features.inc"
#undef BM_CPU_FEATURE
};

/// x86-64-v2, v3 and v4 as the psABI defines them (v4 = the AVX-512 of Skylake servers).
inline constexpr uint64_t kX86V2 = BM_CPU_SSE2 | BM_CPU_SSE41 | BM_CPU_SSE42 | BM_CPU_POPCNT;
inline constexpr uint64_t kX86V3 = kX86V2 | BM_CPU_AVX | BM_CPU_AVX2 | BM_CPU_FMA | BM_CPU_F16C | BM_CPU_BMI1 |
                                   BM_CPU_BMI2 | BM_CPU_LZCNT | BM_CPU_MOVBE;
inline constexpr uint64_t kX86V4 =
    kX86V3 | BM_CPU_AVX512F | BM_CPU_AVX512BW | BM_CPU_AVX512VL | BM_CPU_AVX512DQ | BM_CPU_AVX512CD;

/// All of AMX that generated code uses: tiles of 16 rows of 64 bytes, products of bytes and of bf16.
inline constexpr uint64_t kX86Amx = BM_CPU_AMX_TILE | BM_CPU_AMX_INT8 | BM_CPU_AMX_BF16;

/// The features of this machine, usable under this operating system. Detected once; 0 elsewhere
/// than on x86-64. A process may use those of AMX once it has asked for them: requestCpuFeatures().
uint64_t cpuFeatures();

/// The features of |wanted| that this process may use. Asks Linux for the registers of AMX where |wanted| has them, for
/// all threads and for good: from then on a signal handler's frame has 8 KiB more.
uint64_t requestCpuFeatures(uint64_t wanted);

/// Writes the names of |features| into |buffer|, separated by ", ", unknown bits as "bit 57";
/// cut off at |size|, always terminated. Returns |buffer|.
const char *cpuFeatureNames(uint64_t features, char *buffer, size_t size);

} // namespace bmodel

#endif // BMODEL_CPU_FEATURES_H
