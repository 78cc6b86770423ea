// SPDX-License-Identifier: Apache-2.0
//===- Sha256.cpp - SHA-256, portable and with SHA-NI ---------------------===//
#include "bmodel/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

using namespace bmodel;

namespace {

alignas(16) constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void compressPortable(uint32_t state[8], const uint8_t *data, size_t blocks) {
  for (; blocks > 0; --blocks, data += 64) {
    uint32_t w[64];
    for (int i = 0; i < 16; ++i) {
      w[i] = uint32_t(data[4 * i]) << 24 | uint32_t(data[4 * i + 1]) << 16 | uint32_t(data[4 * i + 2]) << 8 |
             data[4 * i + 3];
    }
    for (int i = 16; i < 64; ++i) {
      const uint32_t a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + w[i - 7] +
             (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
    }
    uint32_t s[8];
    memcpy(s, state, sizeof(s));
    for (int i = 0; i < 64; ++i) {
      const uint32_t t1 = s[7] + (std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25)) +
                          ((s[4] & s[5]) ^ (~s[4] & s[6])) + kRound[i] + w[i];
      const uint32_t t2 = (std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22)) +
                          ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
      memmove(s + 1, s, 7 * sizeof(uint32_t));
      s[4] += t1;
      s[0] = t1 + t2;
    }
    for (int i = 0; i < 8; ++i) {
      state[i] += s[i];
    }
  }
}

#if defined(__x86_64__)
__attribute__((target("sha,sse4.1"))) void compressShaNi(uint32_t state[8], const uint8_t *data, size_t blocks) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  // The instructions want the state as ABEF and CDGH.
  __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
  __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
  __m128i abef = _mm_alignr_epi8(low, high, 8);
  __m128i cdgh = _mm_blend_epi16(high, low, 0xf0);
  for (; blocks > 0; --blocks, data += 64) {
    const __m128i abefBefore = abef, cdghBefore = cdgh;
    __m128i w[4];
    for (int i = 0; i < 4; ++i) {
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(data + 16 * i)), swap);
    }
    for (int i = 0; i < 16; ++i) {
      __m128i &current = w[i & 3];
      if (i >= 4) {
        const __m128i last = w[(i + 3) & 3];
        current = _mm_sha256msg1_epu32(current, w[(i + 1) & 3]);
        current = _mm_add_epi32(current, _mm_alignr_epi8(last, w[(i + 2) & 3], 4));
        current = _mm_sha256msg2_epu32(current, last);
      }
      const __m128i sum = _mm_add_epi32(current, _mm_load_si128((const __m128i *)(kRound + 4 * i)));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
    }
    abef = _mm_add_epi32(abef, abefBefore);
    cdgh = _mm_add_epi32(cdgh, cdghBefore);
  }
  low = _mm_shuffle_epi32(abef, 0x1b);
  high = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(low, high, 0xf0));
  _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(high, low, 8));
}

bool hasShaNi() {
  unsigned a, b, c, d;
  const bool sse41 = __get_cpuid(1, &a, &b, &c, &d) && (c >> 19 & 1);
  return sse41 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1);
}
#endif

void compress(uint32_t state[8], const uint8_t *data, size_t blocks) {
#if defined(__x86_64__)
  static const bool shaNi = hasShaNi();
  if (shaNi) {
    return compressShaNi(state, data, blocks);
  }
#endif
  compressPortable(state, data, blocks);
}

} // namespace

void Sha256::update(const void *data, size_t size) {
  const uint8_t *bytes = static_cast<const uint8_t *>(data);
  totalBytes += size;
  if (pendingBytes > 0) {
    const size_t take = std::min(size, sizeof(pending) - pendingBytes);
    memcpy(pending + pendingBytes, bytes, take);
    pendingBytes += take;
    bytes += take;
    size -= take;
    if (pendingBytes < sizeof(pending)) {
      return;
    }
    compress(state, pending, 1);
    pendingBytes = 0;
  }
  compress(state, bytes, size / 64);
  pendingBytes = size % 64;
  if (pendingBytes > 0) {
    memcpy(pending, bytes + size - pendingBytes, pendingBytes);
  }
}

std::array<uint8_t, 32> Sha256::finish() {
  const uint64_t bits = totalBytes * 8;
  uint8_t tail[72] = {0x80};
  const size_t padding = (pendingBytes < 56 ? 56 : 120) - pendingBytes;
  for (int i = 0; i < 8; ++i) {
    tail[padding + i] = uint8_t(bits >> (56 - 8 * i));
  }
  update(tail, padding + 8);
  std::array<uint8_t, 32> digest;
  for (int i = 0; i < 32; ++i) {
    digest[i] = uint8_t(state[i / 4] >> (24 - 8 * (i % 4)));
  }
  return digest;
}
