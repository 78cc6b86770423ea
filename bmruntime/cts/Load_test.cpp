// SPDX-License-Identifier: Apache-2.0
//===- Load_test.cpp - Files that opening accepts and rejects -------------===//
#include "Fixture.h"

#include <cstring>
#include <fstream>

using namespace bmrt;
using namespace bmrt::cts;
using bmodel::test::AddRelu;
using bmodel::test::readBytes;
using bmodel::test::temporaryPath;

namespace {

/// Returns the error of opening |path|; empty if it opens.
std::string openError(const std::string &path, bmrt_code_t expected, bool trust = false) {
  try {
    Model model(path, trust);
    return "";
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), expected) << error.what();
    return error.what();
  }
}

template <typename TestModel>
std::string writeAndOpen(TestModel &model, bmrt_code_t expected) {
  const std::string path = temporaryPath("load.bmodel");
  EXPECT_EQ(model.write(path), "");
  const std::string error = openError(path, expected);
  unlink(path.c_str());
  return error;
}

/// The bytes of a file, aligned to 64.
class AlignedCopy {
public:
  explicit AlignedCopy(const std::vector<char> &from) : storage(from.size() + 64), count(from.size()) {
    memcpy(data(), from.data(), count);
  }
  char *data() { return reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(storage.data()) + 63) / 64 * 64); }
  size_t size() const { return count; }

private:
  std::vector<char> storage;
  size_t count;
};

TEST(Load, EveryAlteredByteIsRejected) {
  AddRelu test(kernelCode(), 1024);
  const std::string path = temporaryPath("flip.bmodel");
  ASSERT_EQ(test.write(path), "");
  AlignedCopy file(readBytes(path));
  unlink(path.c_str());
  for (size_t i = 0; i < file.size(); i += 64) {
    for (size_t at : {i, i + 37}) {
      file.data()[at] ^= char(1 << (i / 64 % 8));
      bmrt_model_t *model = nullptr;
      bmrt_status_t status;
      ASSERT_NE(bmrt_model_open_memory(file.data(), file.size(), nullptr, &model, &status), BMRT_OK) << "byte " << at;
      ASSERT_STRNE(status.message, "");
      file.data()[at] ^= char(1 << (i / 64 % 8));
    }
  }
}

TEST(Load, EveryTruncationIsRejected) {
  AddRelu test(kernelCode(), 1024);
  const std::string path = temporaryPath("cut.bmodel");
  ASSERT_EQ(test.write(path), "");
  const std::vector<char> whole = readBytes(path);
  for (size_t size = 0; size < whole.size(); size += 509) {
    std::ofstream(path, std::ios::binary).write(whole.data(), std::streamsize(size));
    ASSERT_NE(openError(path, BMRT_CORRUPT), "") << size;
  }
  unlink(path.c_str());
}

TEST(Load, TrustSkipsConstantsOnly) {
  AddRelu test(kernelCode(), 1024);
  const std::string path = temporaryPath("trust.bmodel");
  ASSERT_EQ(test.write(path), "");
  std::vector<char> bytes = readBytes(path);
  auto rewrite = [&] { std::ofstream(path, std::ios::binary).write(bytes.data(), std::streamsize(bytes.size())); };
  bytes[bytes.size() - 4096 + 9] ^= 1; // the weights are last
  rewrite();
  EXPECT_TRUE(contains(openError(path, BMRT_CORRUPT), "tensor 'w'"));
  EXPECT_EQ(openError(path, BMRT_CORRUPT, /*trust=*/true), "");
  bytes[4096 + 9] ^= 1; // the code
  rewrite();
  EXPECT_TRUE(contains(openError(path, BMRT_CORRUPT, /*trust=*/true), "Code segment 0"));
  unlink(path.c_str());
}

TEST(Load, FilesThatAreNone) {
  EXPECT_TRUE(contains(openError("/no/such/file", BMRT_IO), "/no/such/file"));
  EXPECT_TRUE(contains(openError("/tmp", BMRT_CORRUPT), "not a regular file"));
  EXPECT_TRUE(contains(openError("/dev/zero", BMRT_CORRUPT), "not a regular file"));
  const std::string path = temporaryPath("empty");
  std::ofstream(path).flush();
  EXPECT_TRUE(contains(openError(path, BMRT_CORRUPT), "empty"));
  unlink(path.c_str());
}

TEST(Load, SaysWhatTheCpuLacks) {
  AddRelu test(kernelCode(), 1024);
  test.subnet().isa = "x86-64-v99";
  test.subnet().cpu_features |= uint64_t(1) << 62;
  const std::string error = writeAndOpen(test, BMRT_UNSUPPORTED);
  EXPECT_TRUE(contains(error, "x86-64-v99")) << error;
  EXPECT_TRUE(contains(error, "lacks bit 62")) << error;
}

TEST(Load, AStageForAnotherMachineDoesNotCondemnTheFile) {
  AddRelu test(kernelCode(), 1024);
  auto &stages = test.model.nets[0]->stages;
  stages.insert(stages.begin(), std::make_unique<bmodel::StageDefT>(*stages[0]));
  stages[0]->subnets[0]->cpu_features |= uint64_t(1) << 62;
  Model model = openWritten(test, "stages.bmodel");
  EXPECT_FALSE(model.stageInfo(0, 0).runnable);
  EXPECT_TRUE(model.stageInfo(0, 1).runnable);
  Net net(model); // selects the second stage
  net.run();
  EXPECT_THROW(Net(model, {.stage = 0}), Error);
  EXPECT_THROW(Net(model, {.stage = 2}), Error);
  EXPECT_THROW(Net(model, {.net = "other"}), Error);
}

TEST(Load, BackEndsThisLibraryLacks) {
  AddRelu test(kernelCode(), 1024);
  test.subnet().kind = bmodel::SubnetKind::Device;
  test.model.chips[0]->family = "sextant";
  EXPECT_TRUE(
      contains(writeAndOpen(test, BMRT_UNSUPPORTED), "family 'sextant' need the back end libbmrt_sextant.so beside"));
  test.model.chips[0]->family = "../elsewhere";
  EXPECT_TRUE(contains(writeAndOpen(test, BMRT_UNSUPPORTED), "'../elsewhere' is not the name of a chip family"));
}

TEST(Load, CodeWithoutTheKernel) {
  AddRelu test(kernelCode(), 1024);
  test.subnet().kernels[0]->symbol = "subtract";
  EXPECT_TRUE(contains(writeAndOpen(test, BMRT_CORRUPT), "'subtract'"));
  test.subnet().kernels[0]->symbol = "twice"; // a static function is not in the symbol table
  EXPECT_TRUE(contains(writeAndOpen(test, BMRT_CORRUPT), "'twice'"));
}

TEST(Load, CodeThatIsNoElf) {
  AddRelu test(std::vector<char>(1000, 'x'), 1024);
  EXPECT_TRUE(contains(writeAndOpen(test, BMRT_CORRUPT), "ELF"));
}

TEST(Load, MemoryMustBeAligned) {
  AlignedCopy bytes(std::vector<char>(1000));
  bmrt_model_t *model = nullptr;
  bmrt_status_t status;
  EXPECT_EQ(bmrt_model_open_memory(bytes.data() + 1, 900, nullptr, &model, &status), BMRT_INVALID_ARGUMENT);
  EXPECT_EQ(bmrt_model_open_memory(bytes.data(), 900, nullptr, &model, nullptr), BMRT_CORRUPT)
      << "a status is optional";
}

TEST(Load, ConstantsAreNotCopied) {
  AddRelu test(kernelCode(), 4 << 20);
  Model model = openWritten(test, "mapped.bmodel", /*trust=*/true);
  Net net(model, {.threads = 2});
  auto privateKib = [] {
    std::ifstream file("/proc/self/smaps_rollup");
    std::string word;
    long kib = 0;
    while (file >> word) {
      if (word == "Private_Dirty:" || word == "Private_Clean:") {
        long value;
        file >> value;
        kib += word == "Private_Dirty:" ? value : 0;
      }
    }
    return kib;
  };
  net.run();
  const long before = privateKib();
  for (int i = 0; i < 3; ++i) {
    net.run();
  }
  EXPECT_LT(privateKib() - before, 1024) << "KiB of private memory a run adds";
}

} // namespace
