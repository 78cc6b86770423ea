//===- fuzz_gguf_import.cpp - libFuzzer target of the GGUF importer ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Decoder/DecoderImport.h"
#include "top_dialect/Import/Gguf/GgufCheckpoint.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "top_dialect/IR/TopDialect.h"

using namespace tessera::top;

// Any input must give a module or an error. A crash, an assertion or a leak is a finding.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto checkpoint = readGguf(llvm::MemoryBuffer::getMemBufferCopy({reinterpret_cast<const char *>(data), size}));
  if (!checkpoint) {
    llvm::consumeError(checkpoint.takeError());
    return 0;
  }
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect, TopDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  DecoderOptions options;
  options.context = std::min<int64_t>(checkpoint->config.context, 8), options.chunk = 4;
  options.keepsFormats = size % 2 == 0;
  auto module = importDecoder(*checkpoint, options, &context);
  if (!module) {
    llvm::consumeError(module.takeError());
  }
  return 0;
}
