//===- fuzz_onnx_import.cpp - libFuzzer target of the ONNX importer ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/OnnxImport.h"

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
  ImportOptions options;
  options.maxFoldBytes = 1 << 20;
  options.memoryLimit = int64_t(256) << 20;
  options.requireStatic = size % 2 == 0; // otherwise the import tries the sizes that it proposes
  auto module = importOnnxBytes({reinterpret_cast<const char *>(data), size}, "fuzz.onnx", options, context);
  if (!module) {
    llvm::consumeError(module.takeError());
  }
  return 0;
}
