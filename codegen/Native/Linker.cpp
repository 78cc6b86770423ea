//===- Linker.cpp - Links kernels to one shared object --------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Native/Linker.h"

#include "lld/Common/Driver.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/raw_ostream.h"
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

namespace tessera::native {

namespace {
/// An anonymous file in memory, which lld opens through /proc/self/fd.
class MemoryFile {
public:
  MemoryFile() : descriptor(memfd_create("tessera", MFD_CLOEXEC)) {}
  MemoryFile(MemoryFile &&other) : descriptor(std::exchange(other.descriptor, -1)) {}
  ~MemoryFile() {
    if (descriptor >= 0) {
      close(descriptor);
    }
  }
  bool valid() const { return descriptor >= 0; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor); }

  bool write(llvm::ArrayRef<char> bytes) {
    while (!bytes.empty()) {
      ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
      if (count <= 0) {
        return false;
      }
      bytes = bytes.drop_front(count);
    }
    return true;
  }

private:
  int descriptor;
};
/// The output of lld. lld does not write a regular file in place, but it writes to a pipe, which a thread drains.
class OutputPipe {
public:
  OutputPipe() {
    if (pipe2(ends, O_CLOEXEC) == 0) {
      reader = std::thread([this] {
        char buffer[1 << 16];
        for (ssize_t count; (count = ::read(ends[0], buffer, sizeof(buffer))) > 0;) {
          bytes.insert(bytes.end(), buffer, buffer + count);
        }
      });
    }
  }
  ~OutputPipe() { finish(); }
  bool valid() const { return ends[0] >= 0; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(ends[1]); }

  /// Closes the pipe and returns the bytes that were written.
  std::vector<char> finish() {
    if (reader.joinable()) {
      close(ends[1]);
      reader.join();
      close(ends[0]);
    }
    return std::move(bytes);
  }

private:
  int ends[2] = {-1, -1};
  std::vector<char> bytes;
  std::thread reader;
};
} // namespace

llvm::Expected<std::vector<char>> linkSharedObject(llvm::ArrayRef<llvm::ArrayRef<char>> objects, unsigned pageBytes) {
  static std::mutex mutex; // lld keeps global state
  std::lock_guard<std::mutex> lock(mutex);
  auto systemError = [](const char *what) {
    return llvm::createStringError(llvm::Twine("failed to link kernels: ") + what + ": " + llvm::sys::StrError());
  };
  std::vector<MemoryFile> inputs;
  for (llvm::ArrayRef<char> object : objects) {
    inputs.emplace_back();
    if (!inputs.back().valid() || !inputs.back().write(object)) {
      return systemError("memory file");
    }
  }
  OutputPipe output;
  if (!output.valid()) {
    return systemError("pipe");
  }
  std::vector<std::string> arguments = {"ld.lld", "-shared", "-nostdlib", "--hash-style=gnu", "-z", "now"};
  arguments.insert(arguments.end(), {"-z", "max-page-size=" + std::to_string(pageBytes), "-s", "--build-id=none",
                                     "--threads=1", "-o", output.path()});
  for (const MemoryFile &input : inputs) {
    arguments.push_back(input.path());
  }
  std::vector<const char *> pointers;
  for (const std::string &argument : arguments) {
    pointers.push_back(argument.c_str());
  }
  std::string messages;
  llvm::raw_string_ostream os(messages);
  lld::Result result = lld::lldMain(pointers, os, os, {{lld::Gnu, &lld::elf::link}});
  std::vector<char> bytes = output.finish();
  if (result.retCode != 0 || bytes.empty()) {
    return llvm::createStringError("failed to link kernels: " + messages);
  }
  return bytes;
}

} // namespace tessera::native
