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

/// A file of its own, removed with its guard.
llvm::Expected<llvm::FileRemover> makeFile(llvm::StringRef suffix, llvm::SmallVectorImpl<char> &path,
                                           llvm::StringRef contents = "") {
  int descriptor;
  if (std::error_code error = llvm::sys::fs::createTemporaryFile("kernels", suffix, descriptor, path)) {
    return llvm::createStringError(error, "cannot make a file for ptxas");
  }
  llvm::raw_fd_ostream os(descriptor, /*shouldClose=*/true);
  os << contents;
  os.close();
  llvm::FileRemover remover(path);
  if (os.has_error()) {
    std::error_code error = os.error();
    os.clear_error();
    return llvm::createStringError(error, "cannot write a file for ptxas");
  }
  return std::move(remover);
}

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
  llvm::SmallString<128> input, output, log;
  auto inputFile = makeFile("ptx", input, ptx), outputFile = makeFile("cubin", output), logFile = makeFile("log", log);
  for (auto *file : {&inputFile, &outputFile, &logFile}) {
    if (!*file) {
      llvm::Error error = file->takeError();
      for (auto *other : {&inputFile, &outputFile, &logFile}) {
        if (other != file && !*other) {
          llvm::consumeError(other->takeError());
        }
      }
      return std::move(error);
    }
  }
  std::string arch = "-arch=sm_" + std::to_string(computeCapability);
  llvm::StringRef arguments[] = {*program, arch, input, "-o", output};
  std::optional<llvm::StringRef> redirects[] = {std::nullopt, llvm::StringRef(log), llvm::StringRef(log)};
  std::string error;
  if (llvm::sys::ExecuteAndWait(*program, arguments, std::nullopt, redirects, 0, 0, &error) != 0) {
    return llvm::createStringError("internal error: ptxas refuses the kernels: " + error + contentsOf(log));
  }
  return contentsOf(output);
}

} // namespace tessera::cuda
