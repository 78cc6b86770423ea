//===- fuzz_tflite_import.cpp - libFuzzer target of the TFLite importer ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Tflite/TfliteImport.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "top_dialect/IR/TopDialect.h"

using namespace tessera::top;

// Any input must give a module or an error. A crash, an assertion or a leak is a finding.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect, TopDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto module = importTflite(llvm::MemoryBuffer::getMemBufferCopy({reinterpret_cast<const char *>(data), size}),
                             ImportOptions(), context);
  if (!module) {
    llvm::consumeError(module.takeError());
  }
  return 0;
}
