//===- fuzz_hugging_face_import.cpp - libFuzzer target of the importer of Hugging Face folders ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Decoder/DecoderImport.h"
#include "top_dialect/Import/HuggingFace/HuggingFaceCheckpoint.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "top_dialect/IR/TopDialect.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace tessera::top;
using llvm::StringRef;

namespace {

/// Files of a folder, in the order in which an input has them, each behind its size as a u32.
constexpr llvm::StringLiteral kFiles[] = {"config.json", "model.safetensors.index.json", "model.safetensors",
                                          "model-2.safetensors"};

/// Returns a folder that each run fills again, and that is removed at exit.
StringRef scratchFolder() {
  static const auto kFolder = [] {
    llvm::SmallString<128> folder;
    if (llvm::sys::fs::createUniqueDirectory("tessera-fuzz", folder)) {
      abort();
    }
    return folder;
  }();
  static const int kRegistered = std::atexit([] { llvm::sys::fs::remove_directories(kFolder); });
  (void)kRegistered;
  return kFolder;
}

/// Writes the files of an input. An empty one is left out.
void writeFiles(StringRef input) {
  for (StringRef name : kFiles) {
    llvm::SmallString<128> path(scratchFolder());
    llvm::sys::path::append(path, name);
    llvm::sys::fs::remove(path);
    uint64_t size = 0;
    if (input.size() >= sizeof(uint32_t)) {
      size = llvm::support::endian::read32le(input.data());
      input = input.drop_front(sizeof(uint32_t));
    }
    StringRef content = input.take_front(size);
    input = input.drop_front(content.size());
    std::error_code error;
    if (!content.empty()) {
      llvm::raw_fd_ostream(path, error) << content;
    }
  }
}

} // namespace

// Any input must give a module or an error. A crash, an assertion or a leak is a finding.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  writeFiles({reinterpret_cast<const char *>(data), size});
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect, TopDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto checkpoint = openHuggingFace(scratchFolder(), &context);
  if (!checkpoint) {
    llvm::consumeError(checkpoint.takeError());
    return 0;
  }
  DecoderOptions options;
  options.context = std::min<int64_t>(checkpoint->config.context, 8), options.chunk = 4;
  auto module = importDecoder(*checkpoint, options, &context);
  if (!module) {
    llvm::consumeError(module.takeError());
  }
  return 0;
}
