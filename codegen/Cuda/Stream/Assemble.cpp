//===- Assemble.cpp - Assembles PTX with ptxas ----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/Stream/PtxKernels.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

namespace tessera::cuda {
namespace {

/// A temporary file that is removed with its object.
struct TemporaryFile {
  llvm::Error make(llvm::StringRef suffix, llvm::StringRef contents = "") {
    int descriptor;
    if (std::error_code error = llvm::sys::fs::createTemporaryFile("kernels", suffix, descriptor, path)) {
      return llvm::createStringError(error, "cannot create a file for ptxas");
    }
    remover.setFile(path);
    llvm::raw_fd_ostream os(descriptor, /*shouldClose=*/true);
    os << contents;
    os.close();
    std::error_code error = os.error();
    os.clear_error();
    return error ? llvm::createStringError(error, "cannot write a file for ptxas") : llvm::Error::success();
  }

  llvm::SmallString<128> path;
  llvm::FileRemover remover;
};

std::string contentsOf(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

/// Runs |program| and returns its output; an error with the output if it fails.
llvm::Expected<std::string> run(llvm::StringRef program, llvm::ArrayRef<llvm::StringRef> arguments) {
  TemporaryFile log;
  if (llvm::Error error = log.make("log")) {
    return std::move(error);
  }
  llvm::SmallVector<llvm::StringRef> all = {program};
  llvm::append_range(all, arguments);
  std::optional<llvm::StringRef> redirects[] = {std::nullopt, llvm::StringRef(log.path), llvm::StringRef(log.path)};
  std::string error;
  if (llvm::sys::ExecuteAndWait(program, all, std::nullopt, redirects, 0, 0, &error) != 0) {
    return llvm::createStringError(error + contentsOf(log.path));
  }
  return contentsOf(log.path);
}

/// Returns a hash of everything that determines the machine code. Returns "" if the assembler does not report its
/// version; then its result must not be cached.
std::string keyOf(llvm::StringRef ptx, llvm::StringRef arch, llvm::StringRef program) {
  llvm::Expected<std::string> version = run(program, {"--version"});
  if (!version) {
    llvm::consumeError(version.takeError());
    return "";
  }
  std::string text = *version + arch.str() + '\0' + ptx.str();
  llvm::XXH128_hash_t hash = llvm::xxh3_128bits(llvm::arrayRefFromStringRef(text));
  return llvm::formatv("{0:x-16}{1:x-16}-cubin", hash.high64, hash.low64);
}

} // namespace

llvm::Expected<std::optional<std::string>> assemble(llvm::StringRef ptx, unsigned computeCapability,
                                                    codegen::FileCache &cache) {
  llvm::ErrorOr<std::string> program = llvm::sys::findProgramByName("ptxas");
  if (!program) {
    return std::nullopt;
  }
  const std::string arch = "-arch=sm_" + std::to_string(computeCapability);
  const std::string key = cache.isOff() ? "" : keyOf(ptx, arch, *program);
  if (std::optional<std::string> known = key.empty() ? std::nullopt : cache.lookup(key)) {
    return known;
  }
  TemporaryFile input, output;
  if (llvm::Error error = input.make("ptx", ptx)) {
    return std::move(error);
  }
  if (llvm::Error error = output.make("cubin")) {
    return std::move(error);
  }
  llvm::Expected<std::string> message = run(*program, {arch, input.path, "-o", output.path});
  if (!message) {
    return llvm::createStringError("internal error: ptxas rejects the kernels: " + llvm::toString(message.takeError()));
  }
  std::string code = contentsOf(output.path);
  if (!key.empty()) {
    cache.insert(key, code);
    cache.prune();
  }
  return code;
}

} // namespace tessera::cuda
