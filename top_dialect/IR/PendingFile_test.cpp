//===- PendingFile_test.cpp - Files appear together or not at all ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/PendingFile.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <csignal>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tessera::top;

namespace {

llvm::Error writeBoth(llvm::StringRef folder, const std::string &text) {
  std::vector<PendingFile> files;
  for (const char *name : {"/a", "/b"}) {
    auto file = PendingFile::write((folder + name).str(), [&](llvm::raw_ostream &os) { os << text; });
    if (!file) {
      return file.takeError();
    }
    files.push_back(std::move(*file));
  }
  return PendingFile::keep(files);
}

std::string readFile(const llvm::Twine &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

size_t countFiles(llvm::StringRef folder) {
  std::error_code error;
  size_t count = 0;
  for (llvm::sys::fs::directory_iterator it(folder, error), end; it != end && !error; it.increment(error)) {
    ++count;
  }
  return count;
}

struct PendingFileTest : testing::Test {
  /// Background jobs ignore SIGINT. Restore the default before the first file, when LLVM installs its handlers.
  static void SetUpTestSuite() { signal(SIGINT, SIG_DFL); }
  void SetUp() override { ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("pending", folder)); }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }
  llvm::SmallString<128> folder;
};

TEST_F(PendingFileTest, PipesAndDevicesAreNotReplaced) {
  std::string pipe = (folder + "/a").str();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  llvm::Error error = writeBoth(folder, "text");
  ASSERT_TRUE(bool(error));
  EXPECT_NE(llvm::toString(std::move(error)).find("not a regular file"), std::string::npos);
  EXPECT_EQ(countFiles(folder), 1u);
  llvm::sys::fs::file_status status;
  EXPECT_FALSE(llvm::sys::fs::status(pipe, status));
  EXPECT_EQ(status.type(), llvm::sys::fs::file_type::fifo_file);
}

TEST_F(PendingFileTest, NothingAppearsUnlessKept) {
  {
    auto file = PendingFile::write((folder + "/a").str(), [](llvm::raw_ostream &os) { os << "text"; });
    ASSERT_TRUE(bool(file));
    EXPECT_EQ(readFile(folder + "/a"), "");
  }
  EXPECT_EQ(countFiles(folder), 0u);
  EXPECT_FALSE(bool(writeBoth(folder, "text")));
  EXPECT_EQ(readFile(folder + "/a"), "text");
  EXPECT_EQ(countFiles(folder), 2u);
}

TEST_F(PendingFileTest, SignalsLeaveBothOrNone) {
  for (int delay = 0; delay < 60; ++delay) {
    pid_t child = fork();
    if (!child) {
      for (int generation = 0;; ++generation) {
        if (writeBoth(folder, std::to_string(generation))) {
          _exit(1);
        }
      }
    }
    usleep(useconds_t(2000 + delay * 37));
    kill(child, SIGINT);
    int result = 0;
    waitpid(child, &result, 0);
    ASSERT_TRUE(WIFSIGNALED(result) && WTERMSIG(result) == SIGINT) << result;
    ASSERT_EQ(readFile(folder + "/a"), readFile(folder + "/b"));
    ASSERT_LE(countFiles(folder), 2u);
  }
}

TEST_F(PendingFileTest, ErrorsNameThePath) {
  auto file = PendingFile::write((folder + "/none/a").str(), [](llvm::raw_ostream &) {});
  ASSERT_FALSE(bool(file));
  std::string message = llvm::toString(file.takeError());
  EXPECT_NE(message.find("cannot write '" + (folder + "/none/a").str() + "'"), std::string::npos) << message;
}

} // namespace
