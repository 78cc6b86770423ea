//===- KernelCache_test.cpp - Keys and entries of the kernel cache --------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/KernelCache.h"

#include "codegen/Kernels/KernelInterface.h"
#include "codegen/X86/KernelCompiler.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/DeviceOps.h"
#include "top_dialect/IR/TopDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
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
  const Kernel kernel = {{"map_0123", 3, 64, 128, 4096, 2, {{5, BM_DIM_CONST, {}}, {0, BM_DIM_PARAM, {}}}},
                         {'c', 'o', 'd', 'e'}};
};

TEST_F(KernelCacheTest, GivesBackWhatTheSameBuildMade) {
  KernelCache(folder.str().str()).insert(key, kernel);
  std::optional<Kernel> found = KernelCache(folder.str().str()).lookup(key);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->code, kernel.code);
  EXPECT_EQ(found->frame.symbol, "map_0123");
  EXPECT_EQ(found->frame.tiles, 3);
  EXPECT_EQ(found->frame.scratchBytes, 64);
  EXPECT_EQ(found->frame.blockThreads, 128u);
  EXPECT_EQ(found->frame.sharedBytes, 4096);
  EXPECT_EQ(found->frame.counters, 2);
  ASSERT_EQ(found->frame.tileTerms.size(), 2u);
  EXPECT_EQ(found->frame.tileTerms[0].value, 5);
  EXPECT_EQ(found->frame.tileTerms[1].op, BM_DIM_PARAM);
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

/// Returns the key of a matmul [2, k] x [k, 2] whose weights, |elements| of type |element|, are packed as |packing|.
std::string keyOf(int64_t k, const std::string &packing, int64_t elements, const std::string &element = "f32") {
  static mlir::MLIRContext *context = [] {
    mlir::DialectRegistry registry;
    registry.insert<tessera::device::DeviceDialect, tessera::top::TopDialect, mlir::func::FuncDialect>();
    registerX86Kernels(registry);
    auto *created = new mlir::MLIRContext(registry);
    created->loadAllAvailableDialects();
    return created;
  }();
  std::string weights = "tensor<" + std::to_string(elements) + "x" + element + ">";
  std::string one = element == "f32" ? "1.0" : "1";
  std::string a = "tensor<2x" + std::to_string(k) + "xf32>";
  std::string text = "func.func @f(%a: " + a + ") -> tensor<2x2xf32> {\n  %b = top.constant dense<" + one +
                     "> : " + weights + " : " + weights + "\n  %y = device.matmul %a, %b {packing = #x86.packing<" +
                     packing + ">} : (" + a + ", " + weights + ") -> tensor<2x2xf32>\n  return %y : tensor<2x2xf32>\n}";
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, context);
  std::string key;
  if (module) {
    module->walk([&](tessera::device::MatMulOp op) { key = kernelKey(op, X86Target{Isa::Avx512}); });
  }
  return key;
}

// The code of a kernel depends on every fact about packed weights, so each one changes the key.
TEST(KernelKey, HoldsThePacking) {
  const std::string key = keyOf(8, "matrix, f32, shape = [8, 2], tile = 28 x 16", 128);
  ASSERT_FALSE(key.empty());
  EXPECT_EQ(key, keyOf(8, "matrix, f32, shape = [8, 2], tile = 28 x 16", 128));
  EXPECT_NE(key, keyOf(8, "matrix, f32, shape = [8, 2], tile = 14 x 16", 128)) << "rows of the tile";
  EXPECT_NE(key, keyOf(8, "matrix, f32, shape = [8, 2], tile = 14 x 32", 128)) << "columns of the tile";
  const std::string integers = keyOf(32, "matrix, i8, shape = [32, 2], tile = 28 x 16", 512, "i8");
  ASSERT_FALSE(integers.empty());
  EXPECT_NE(integers, keyOf(32, "matrix, i4, shape = [32, 2], tile = 28 x 16", 256, "i8")) << "bits";
  const std::string scaled = keyOf(32, "matrix, i8, shape = [32, 2], tile = 28 x 16, scale_group = 16", 640, "i8");
  ASSERT_FALSE(scaled.empty());
  EXPECT_NE(integers, scaled) << "rows of scales";
}

TEST_F(KernelCacheTest, AnotherPackingMissesIt) {
  const std::string before = keyOf(8, "matrix, f32, shape = [8, 2], tile = 28 x 16", 128);
  ASSERT_FALSE(before.empty());
  KernelCache(folder.str().str()).insert(before, kernel);
  EXPECT_TRUE(KernelCache(folder.str().str()).lookup(before));
  EXPECT_FALSE(KernelCache(folder.str().str()).lookup(keyOf(8, "matrix, f32, shape = [8, 2], tile = 14 x 16", 128)));
}

TEST(BuildIdentity, IsThere) { EXPECT_EQ(buildIdentity().size(), 32u); }

} // namespace
