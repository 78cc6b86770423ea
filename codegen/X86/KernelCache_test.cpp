//===- KernelCache_test.cpp - What the cache gives back, and to whom ------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/KernelCache.h"

#include "llvm/Support/FileSystem.h"
#include <gtest/gtest.h>

using namespace tessera::x86;

namespace {

class KernelCacheTest : public testing::Test {
protected:
  void SetUp() override { ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("kernel-cache", folder)); }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  llvm::SmallString<128> folder;
  const std::string key = "0123456789abcdef0123456789abcdef";
  const Kernel kernel = {{"map_0123", 3, 64}, {'c', 'o', 'd', 'e'}};
};

TEST_F(KernelCacheTest, GivesBackWhatTheSameBuildMade) {
  KernelCache(folder.str().str()).insert(key, kernel);
  std::optional<Kernel> found = KernelCache(folder.str().str()).lookup(key);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->object, kernel.object);
  EXPECT_EQ(found->frame.symbol, "map_0123");
  EXPECT_EQ(found->frame.tiles, 3);
  EXPECT_EQ(found->frame.scratchBytes, 64);
}

TEST_F(KernelCacheTest, AnotherBuildMissesIt) {
  KernelCache(folder.str().str(), "one").insert(key, kernel);
  EXPECT_FALSE(KernelCache(folder.str().str(), "other").lookup(key));
  EXPECT_TRUE(KernelCache(folder.str().str(), "one").lookup(key));
}

TEST_F(KernelCacheTest, KeepsNothingForABuildWithoutAName) {
  KernelCache(folder.str().str(), "").insert(key, kernel);
  EXPECT_FALSE(KernelCache(folder.str().str(), "").lookup(key));
  std::error_code error;
  EXPECT_EQ(llvm::sys::fs::directory_iterator(folder, error), llvm::sys::fs::directory_iterator());
}

TEST(BuildIdentity, IsThere) { EXPECT_EQ(buildIdentity().size(), 32u); }

} // namespace
