//===- Assemble.cpp - Machine code by NVIDIA's assembler ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/PtxKernels.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

namespace tessera::cuda {
namespace {

/// A file of its own, which ends with its object.
struct TemporaryFile {
  llvm::Error make(llvm::StringRef suffix, llvm::StringRef contents = "") {
    int descriptor;
    if (std::error_code error = llvm::sys::fs::createTemporaryFile("kernels", suffix, descriptor, path)) {
      return llvm::createStringError(error, "cannot make a file for ptxas");
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

} // namespace

llvm::Expected<std::optional<std::string>> assemble(llvm::StringRef ptx, unsigned computeCapability) {
  llvm::ErrorOr<std::string> program = llvm::sys::findProgramByName("ptxas");
  if (!program) {
    return std::nullopt;
  }
  TemporaryFile input, output, log;
  if (llvm::Error error = input.make("ptx", ptx)) {
    return std::move(error);
  }
  if (llvm::Error error = llvm::joinErrors(output.make("cubin"), log.make("log"))) {
    return std::move(error);
  }
  std::string arch = "-arch=sm_" + std::to_string(computeCapability);
  llvm::StringRef arguments[] = {*program, arch, input.path, "-o", output.path};
  std::optional<llvm::StringRef> redirects[] = {std::nullopt, llvm::StringRef(log.path), llvm::StringRef(log.path)};
  std::string error;
  if (llvm::sys::ExecuteAndWait(*program, arguments, std::nullopt, redirects, 0, 0, &error) != 0) {
    return llvm::createStringError("internal error: ptxas refuses the kernels: " + error + contentsOf(log.path));
  }
  return contentsOf(output.path);
}

} // namespace tessera::cuda
