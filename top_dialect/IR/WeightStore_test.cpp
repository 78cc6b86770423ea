//===- WeightStore_test.cpp - Weights exist as long as they are held ------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/WeightStore.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TopConstOps.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/WeightLifetime.h"

#include "llvm/ADT/SmallString.h"
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace tessera::top;

namespace {

struct Weights : testing::Test {
  Weights() { context.loadDialect<TopDialect>(); }

  std::string add(StringRef hint, char value, int64_t size = 4096) {
    return store().add(hint, IntegerType::get(&context, 8), {size}, std::vector<char>(size, value));
  }
  WeightStore &store() { return context.getLoadedDialect<TopDialect>()->getWeightStore(); }

  MLIRContext context;
};

/// Returns the number of pages of |bytes| that are resident in this process.
size_t residentPages(ArrayRef<char> bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  FILE *file = fopen("/proc/self/pagemap", "rb");
  size_t count = 0;
  for (size_t at = 0; file && at < bytes.size(); at += page) {
    uint64_t entry = 0;
    fseek(file, long(reinterpret_cast<uintptr_t>(bytes.data() + at) / page * sizeof(entry)), SEEK_SET);
    count += fread(&entry, sizeof(entry), 1, file) == 1 && entry >> 63;
  }
  if (file) {
    fclose(file);
  }
  return count;
}

TEST_F(Weights, EqualOnesAreOne) {
  EXPECT_EQ(add("a", 1), "a");
  EXPECT_EQ(add("b", 1), "a");
  EXPECT_EQ(add("a", 2), "a_1");
  EXPECT_EQ(store().bytesInMemory(), 2u * 4096);
}

TEST_F(Weights, DroppedOnesTakeNoMemoryAndKeepTheirKey) {
  add("a", 1), add("b", 2);
  llvm::StringSet<> held;
  held.insert("b");
  store().retain(held);
  EXPECT_FALSE(store().lookup("a"));
  EXPECT_TRUE(store().lookup("b"));
  EXPECT_EQ(store().bytesInMemory(), 4096u);
  EXPECT_EQ(add("a", 3), "a_1") << "another tensor with the same hint";
  EXPECT_EQ(add("c", 1), "a") << "the same bytes again";
  EXPECT_EQ(store().lookup("a")->bytes.front(), 1);
}

TEST_F(Weights, SharedBytesStayForTheOtherShape) {
  std::string key = add("a", 1);
  auto view = *store().lookup(key);
  std::string other = store().add("matrix", view.elementType, {64, 64}, view.bytes, view.owner);
  view.owner.reset();
  EXPECT_EQ(store().bytesInMemory(), 4096u);
  llvm::StringSet<> held;
  held.insert(other);
  store().retain(held);
  EXPECT_EQ(store().bytesInMemory(), 4096u);
  EXPECT_EQ(store().lookup(other)->bytes.back(), 1);
}

TEST_F(Weights, MappedOnesAreReadAgain) {
  const int64_t size = 64 << 10;
  llvm::SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("weights", "safetensors", path));
  {
    WeightStore written(&context);
    written.add("w", IntegerType::get(&context, 8), {size}, std::vector<char>(size, 7));
    auto saved = written.save(path, {"w"});
    ASSERT_TRUE(bool(saved));
    PendingFile files[] = {std::move(saved->file)};
    ASSERT_FALSE(PendingFile::keep(files));
  }
  ASSERT_FALSE(store().open(path));
  ArrayRef<char> bytes = store().lookup("w")->bytes;
  EXPECT_EQ(llvm::count(bytes, 7), size);
  EXPECT_EQ(store().bytesInMemory(), 0u);
  size_t before = residentPages(bytes);
  store().release("w");
  if (before) { // the system reports resident pages
    EXPECT_LE(residentPages(bytes), 2u) << "of " << before << ": those shared with neighbours";
  }
  EXPECT_EQ(llvm::count(bytes, 7), size);
  store().retain({});
  EXPECT_TRUE(store().lookup("w")) << "it costs nothing";
  llvm::sys::fs::remove(path);
}

TEST_F(Weights, LazyOnesAreMadeWhenTheyAreRead) {
  const int64_t size = 8192;
  int made = 0;
  auto make = [&] {
    ++made;
    return std::vector<char>(size, 5);
  };
  auto type = RankedTensorType::get({size}, IntegerType::get(&context, 8));
  add("w", 1);
  EXPECT_EQ(store().addLazily("w", type, make), "w_1");
  llvm::SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("weights", "safetensors", path));
  auto saved = store().save(path, {"w", "w_1"});
  ASSERT_TRUE(bool(saved));
  PendingFile files[] = {std::move(saved->file)};
  ASSERT_FALSE(PendingFile::keep(files));
  EXPECT_EQ(store().bytesInMemory(), 4096u) << "writing it keeps no copy";
  WeightStore read(&context);
  ASSERT_FALSE(read.open(path, saved->hash));
  EXPECT_EQ(read.lookup("w")->bytes.back(), 1);
  EXPECT_EQ(llvm::count(read.lookup("w_1")->bytes, 5), size);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(llvm::count(store().lookup("w_1")->bytes, 5), size);
  store().lookup("w_1");
  EXPECT_EQ(made, 2) << "the second look finds the bytes";
  EXPECT_EQ(store().bytesInMemory(), uint64_t(4096 + size));
  store().retain({});
  EXPECT_FALSE(store().lookup("w_1"));
  EXPECT_EQ(store().bytesInMemory(), 0u);
  llvm::sys::fs::remove(path);
}

TEST_F(Weights, TheSoleHolderGivesUpWhatItDoesNotName) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  OpBuilder builder(module->getBodyRegion());
  auto type = RankedTensorType::get({4096}, builder.getI8Type());
  Value first = createConstant(builder, builder.getUnknownLoc(), type, std::vector<char>(4096, 1), "first");
  createConstant(builder, builder.getUnknownLoc(), type, std::vector<char>(4096, 2), "second");
  first.getDefiningOp()->erase();
  dropUnheldWeights(*module);
  EXPECT_TRUE(store().lookup("first")) << "others may hold it";
  {
    SoleHolder holder(*module);
    dropUnheldWeights(*module);
  }
  EXPECT_FALSE(store().lookup("first"));
  EXPECT_TRUE(store().lookup("second"));
}

} // namespace
