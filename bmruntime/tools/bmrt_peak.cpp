// SPDX-License-Identifier: Apache-2.0
//===- bmrt_peak.cpp - Peak performance of the processor ------------------===//
//
// Prints one JSON object: operations per second of each kind of multiply-add that the processor supports (a
// multiply-add counts as two), and bytes per second read from buffers of several sizes, for all threads together.
// `tessera bench --ops` compares the time of each op with these values.
//
// Usage: bmrt_peak [THREADS]
//
//===----------------------------------------------------------------------===//
#include "bmodel/cpu_features.h"
#include "bmodel_format/tools/Program.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>

namespace {

constexpr int kChains = 16; ///< independent multiply-adds in flight, more than latency times ports
constexpr int64_t kRounds = 200000;
constexpr int kRepeats = 7;
constexpr int64_t kTileRounds = kRounds / 8; ///< iterations of four AMX tile multiplications, which take longer

double secondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Keeps |value| in a register and its computation alive. A macro, because a function would need the caller's target
/// attribute.
#define KEEP(value) asm volatile("" : "+v"(value))

__attribute__((target("avx2,fma"))) void multiplyAvx2() {
  __m256 sums[kChains] = {}, factor = _mm256_set1_ps(0.5f);
  for (int64_t i = 0; i < kRounds; ++i) {
    for (__m256 &sum : sums) {
      sum = _mm256_fmadd_ps(factor, factor, sum);
      KEEP(sum);
    }
  }
}

__attribute__((target("avx512f"))) void multiplyAvx512() {
  __m512 sums[kChains] = {}, factor = _mm512_set1_ps(0.5f);
  for (int64_t i = 0; i < kRounds; ++i) {
    for (__m512 &sum : sums) {
      sum = _mm512_fmadd_ps(factor, factor, sum);
      KEEP(sum);
    }
  }
}

__attribute__((target("avx512f,avx512vnni"))) void multiplyBytes() {
  __m512i sums[kChains] = {}, factor = _mm512_set1_epi8(3);
  for (int64_t i = 0; i < kRounds; ++i) {
    for (__m512i &sum : sums) {
      sum = _mm512_dpbusd_epi32(sum, factor, factor);
      KEEP(sum);
    }
  }
}

__attribute__((target("avx512f,avx512bf16"))) void multiplyBf16() {
  __m512 sums[kChains] = {};
  __m512bh factor = (__m512bh)_mm512_set1_epi16(0x3f00);
  for (int64_t i = 0; i < kRounds; ++i) {
    for (__m512 &sum : sums) {
      sum = _mm512_dpbf16_ps(sum, factor, factor);
      KEEP(sum);
    }
  }
}

/// Sixteen rows of 64 bytes in each of the eight tile registers.
struct alignas(64) TileConfig {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t rowBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

__attribute__((target("amx-tile,amx-int8"))) void multiplyTilesOfBytes() {
  const TileConfig config;
  _tile_loadconfig(&config);
  for (int64_t i = 0; i < kTileRounds; ++i) {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  _tile_release();
}

__attribute__((target("amx-tile,amx-bf16"))) void multiplyTilesOfBf16() {
  const TileConfig config;
  _tile_loadconfig(&config);
  for (int64_t i = 0; i < kTileRounds; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
}

__attribute__((target("avx2"))) void readAll(const std::vector<char> &buffer, int64_t bytes) {
  __m256i sums[4] = {};
  const char *data = buffer.data();
  for (int64_t done = 0; done < bytes;) {
    for (size_t at = 0; at < buffer.size(); at += 128) {
      for (int i = 0; i < 4; ++i) {
        sums[i] = _mm256_xor_si256(sums[i], _mm256_loadu_si256(reinterpret_cast<const __m256i *>(data + at + 32 * i)));
      }
    }
    done += int64_t(buffer.size());
  }
  for (__m256i &sum : sums) {
    KEEP(sum);
  }
}

/// Returns the seconds that |threads| threads take to run |body| together; the minimum of several repetitions.
template <typename Body>
double fastest(int threads, Body body) {
  double best = 1e9;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    std::vector<std::thread> others;
    const double begin = secondsNow();
    for (int i = 1; i < threads; ++i) {
      others.emplace_back(body, i);
    }
    body(0);
    for (std::thread &other : others) {
      other.join();
    }
    best = std::min(best, secondsNow() - begin);
  }
  return best;
}

void printProducts(int threads) {
  struct Kind {
    const char *name;
    bool exists;
    void (*multiply)();
    int operations; ///< operations per instruction
    int64_t instructions = kRounds * kChains;
  };
  const bool wide = __builtin_cpu_supports("avx512f");
  const bool tiles = bmodel::requestCpuFeatures(bmodel::kX86Amx) == bmodel::kX86Amx;
  const Kind kinds[] = {
      {"f32", wide || __builtin_cpu_supports("fma"), wide ? multiplyAvx512 : multiplyAvx2, wide ? 32 : 16},
      {"bf16", wide && __builtin_cpu_supports("avx512bf16"), multiplyBf16, 64},
      {"int8", wide && __builtin_cpu_supports("avx512vnni"), multiplyBytes, 128},
      {"amx_bf16", tiles, multiplyTilesOfBf16, 16 * 16 * 32 * 2, 4 * kTileRounds},
      {"amx_int8", tiles, multiplyTilesOfBytes, 16 * 16 * 64 * 2, 4 * kTileRounds},
  };
  for (const Kind &kind : kinds) {
    if (kind.exists) {
      const double seconds = fastest(threads, [&](int) { kind.multiply(); });
      printf("\"%s\":%.4g,", kind.name, double(threads) * double(kind.instructions) * kind.operations / seconds);
    }
  }
}

void printReads(int threads) {
  const int64_t sizes[] = {256 << 10, 4 << 20, 128 << 20};
  printf("\"reads\":{");
  for (int64_t size : sizes) {
    std::vector<std::vector<char>> buffers(threads, std::vector<char>(size_t(size), 1));
    const int64_t bytes = std::max<int64_t>(size, 64 << 20);
    const double seconds = fastest(threads, [&](int i) { readAll(buffers[size_t(i)], bytes); });
    printf("%s\"%lld\":%.4g", size == sizes[0] ? "" : ",", static_cast<long long>(size),
           double(threads) * double(bytes) / seconds);
  }
  printf("}");
}

void printAll(int threads) {
  printf("{");
  printProducts(threads);
  printReads(threads);
  printf("}\n");
}

} // namespace
#else
static void printAll(int) { puts("{\"reads\":{}}"); }
#endif

int main(int argc, char **argv) {
  constexpr long kMostThreads = 1024;
  const std::vector<std::string> arguments = bmodel::program::begin("bmrt_peak", argc, argv);
  char *end = nullptr;
  const long threads = arguments.empty() ? 1 : strtol(arguments[0].c_str(), &end, 10);
  if (arguments.size() > 1 || (end && *end) || threads < 1 || threads > kMostThreads) {
    fprintf(stderr, "usage: bmrt_peak [THREADS], of 1 to %ld threads\n", kMostThreads);
    return 2;
  }
  printAll(int(threads));
  return 0;
}
