// SPDX-License-Identifier: Apache-2.0
//===- Parts_test.cpp - Hashes, layouts and CPU features ------------------===//
#include "bmodel/cpu_features.h"
#include "bmodel/hash.h"
#include "bmodel/sha256.h"
#include "bmodel/tensor_layout.h"

#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace bmodel {
uint64_t hashAvx2(const void *data, size_t size, uint64_t seed);
uint64_t hashAvx512(const void *data, size_t size, uint64_t seed);
} // namespace bmodel

using namespace bmodel;

namespace {

std::string hex(const std::array<uint8_t, 32> &digest) {
  std::string text;
  for (uint8_t byte : digest) {
    char digits[3];
    snprintf(digits, sizeof(digits), "%02x", byte);
    text += digits;
  }
  return text;
}

std::string sha256(const std::string &text, size_t piece) {
  Sha256 sha;
  for (size_t i = 0; i < text.size(); i += piece) {
    sha.update(text.data() + i, std::min(piece, text.size() - i));
  }
  return hex(sha.finish());
}

// Test vectors of FIPS 180-4 and NIST's examples.
TEST(Sha256, KnownVectors) {
  EXPECT_EQ(sha256("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 5),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  const std::string million(1000000, 'a');
  for (size_t piece : {1000000, 64, 63, 1, 129}) {
    EXPECT_EQ(sha256(million, piece), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  }
}

// Files must have the same hash on every machine. The expected hash of no bytes is that of XXH3's specification.
TEST(Hash, EveryVectorWidthAgrees) {
  EXPECT_EQ(hashBytes(nullptr, 0), 0x2d06800538d394c2u);
  std::vector<unsigned char> data(100000);
  for (size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<unsigned char>(i * 2654435761u >> 13);
  }
  for (size_t size : {1, 3, 17, 129, 241, 1024, 4096, 99999}) {
    const uint64_t expected = hashBytes(data.data(), size, 5);
    if (cpuFeatures() & BM_CPU_AVX2) {
      EXPECT_EQ(hashAvx2(data.data(), size, 5), expected) << size;
    }
    if (cpuFeatures() & BM_CPU_AVX512F) {
      EXPECT_EQ(hashAvx512(data.data(), size, 5), expected) << size;
    }
    data[size / 2] ^= 1;
    EXPECT_NE(hashBytes(data.data(), size, 5), expected) << size;
    data[size / 2] ^= 1;
  }
}

TEST(TensorLayout, StoredBytes) {
  uint64_t bytes = 0;
  const int64_t shape[] = {2, 17, 3, 5};
  EXPECT_TRUE(storedBytes(DType::F32, shape, 4, LayoutKind::RowMajor, 0, 0, bytes));
  EXPECT_EQ(bytes, 2u * 17 * 3 * 5 * 4);
  EXPECT_TRUE(storedBytes(DType::F16, shape, 4, LayoutKind::ChannelBlocked, 16, 1, bytes));
  EXPECT_EQ(bytes, 2u * 32 * 3 * 5 * 2);
  EXPECT_TRUE(storedBytes(DType::I8, shape, 0, LayoutKind::RowMajor, 0, 0, bytes));
  EXPECT_EQ(bytes, 1u);
  EXPECT_FALSE(storedBytes(DType::F32, shape, 4, LayoutKind::ChannelBlocked, 0, 1, bytes));
  EXPECT_FALSE(storedBytes(DType::F32, shape, 4, LayoutKind::ChannelBlocked, 16, 4, bytes));
  EXPECT_FALSE(storedBytes(DType::F32, shape, 4, LayoutKind::Packed, 0, 0, bytes));
  EXPECT_FALSE(storedBytes(DType(99), shape, 4, LayoutKind::RowMajor, 0, 0, bytes));
}

TEST(TensorLayout, EveryTypeHasASizeAndAName) {
  for (int i = 0; i <= int(DType::MAX); ++i) {
    EXPECT_GT(dtypeBytes(DType(i)), 0u) << i;
    EXPECT_STRNE(dtypeName(DType(i)), "?");
  }
}

TEST(TensorLayout, Unblock) {
  // [2, 5, 3] in blocks of 4 along axis 1: element (n, c, d) lies at [n][c / 4][d][c % 4].
  std::vector<uint16_t> stored(2 * 2 * 3 * 4, 9999);
  for (int n = 0; n < 2; ++n) {
    for (int c = 0; c < 5; ++c) {
      for (int d = 0; d < 3; ++d) {
        stored[size_t(((n * 2 + c / 4) * 3 + d) * 4 + c % 4)] = uint16_t(100 * n + 10 * c + d);
      }
    }
  }
  const int64_t shape[] = {2, 5, 3};
  std::vector<uint16_t> rowMajor(2 * 5 * 3);
  unblock(stored.data(), rowMajor.data(), 2, shape, 3, 4, 1);
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(rowMajor[size_t(i)], 100 * (i / 15) + 10 * (i / 3 % 5) + i % 3) << i;
  }
}

TEST(CpuFeatures, Names) {
  char text[64];
  EXPECT_STREQ(cpuFeatureNames(BM_CPU_AVX2 | BM_CPU_AVX512F | uint64_t(1) << 63, text, 64), "avx2, avx512f, bit 63");
  EXPECT_STREQ(cpuFeatureNames(0, text, 64), "");
  char small[8];
  EXPECT_LT(strlen(cpuFeatureNames(~uint64_t(0), small, 8)), 8u);
}

TEST(CpuFeatures, WhatIsRequestedIsHad) {
  EXPECT_EQ(requestCpuFeatures(0), 0u);
  EXPECT_EQ(requestCpuFeatures(uint64_t(1) << 63), 0u);
  EXPECT_EQ(requestCpuFeatures(kX86V4), kX86V4 & cpuFeatures());
  // The operating system grants all AMX registers or none, and repeats its answer.
  const uint64_t all = requestCpuFeatures(~uint64_t(0)), tiles = all & kX86Amx;
  EXPECT_EQ(all & ~kX86Amx, cpuFeatures() & ~kX86Amx);
  EXPECT_TRUE(tiles == 0 || tiles == (cpuFeatures() & kX86Amx));
  EXPECT_EQ(requestCpuFeatures(kX86Amx), tiles);
}

TEST(CpuFeatures, AgreesWithTheCompilersRuntime) {
#if defined(__x86_64__)
  const uint64_t features = cpuFeatures();
  EXPECT_EQ(bool(features & BM_CPU_AVX2), bool(__builtin_cpu_supports("avx2")));
  EXPECT_EQ(bool(features & BM_CPU_FMA), bool(__builtin_cpu_supports("fma")));
  EXPECT_EQ(bool(features & BM_CPU_AVX512F), bool(__builtin_cpu_supports("avx512f")));
  EXPECT_EQ(bool(features & BM_CPU_AVX512VNNI), bool(__builtin_cpu_supports("avx512vnni")));
  EXPECT_EQ(bool(features & BM_CPU_AVX512BF16), bool(__builtin_cpu_supports("avx512bf16")));
#endif
}

} // namespace
