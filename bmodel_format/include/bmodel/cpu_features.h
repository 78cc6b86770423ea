// SPDX-License-Identifier: Apache-2.0
//===- cpu_features.h - Which features a CPU has --------------------------===//
//
// The compiler uses it to choose a variant; the loader uses it to reject code that this CPU cannot run.
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

/// The AMX features that generated code uses: tiles of 16 rows of 64 bytes, int8 and bf16 dot products.
inline constexpr uint64_t kX86Amx = BM_CPU_AMX_TILE | BM_CPU_AMX_INT8 | BM_CPU_AMX_BF16;

/// Returns the features that this machine has and its operating system supports; 0 on machines other than x86-64
/// and AArch64. Detected once. A process may use the AMX features only after requestCpuFeatures().
uint64_t cpuFeatures();

/// Returns the features of |wanted| that this process may use. If |wanted| includes AMX, asks Linux for permission to
/// use the AMX registers. The permission applies to all threads and cannot be withdrawn; it makes every signal frame 8
/// KiB larger.
uint64_t requestCpuFeatures(uint64_t wanted);

/// Writes the names of |features| into |buffer|, separated by ", "; unknown bits appear as "bit 57". Truncates the text
/// to |size| bytes including the terminating 0. Returns |buffer|.
const char *cpuFeatureNames(uint64_t features, char *buffer, size_t size);

} // namespace bmodel

#endif // BMODEL_CPU_FEATURES_H
