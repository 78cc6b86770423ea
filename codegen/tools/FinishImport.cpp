//===- FinishImport.cpp - From an imported module to NAME_top.mlir --------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/FinishImport.h"

#include "codegen/tools/Events.h"
#include "codegen/tools/ModuleInfo.h"
#include "codegen/tools/Subcommand.h"
#include "top_dialect/IR/ModuleIO.h"
#include "top_dialect/Transforms/Passes.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tessera::tool {

static llvm::Error optimise(ModuleOp module) {
  std::string messages;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Warning) {
      reportWarning(diagnostic.str());
    } else if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
      llvm::raw_string_ostream(messages) << (messages.empty() ? "" : "; ") << diagnostic.getLocation() << ": "
                                         << diagnostic;
    }
  });
  PassManager pm(module.getContext());
  top::buildTopPipeline(pm, top::TopPipelineOptions());
  // The importer verified its module, so a failure from here on is a bug of Tessera.
  return failed(pm.run(module)) ? llvm::make_error<CodedError>(kInternal, "graph optimisation failed: " + messages)
                                : llvm::Error::success();
}

llvm::Expected<llvm::json::Object> finishImport(ModuleOp module, const std::string &output, bool optimises) {
  if (optimises) {
    reportPhase("optimise");
    if (llvm::Error error = optimise(module)) {
      return std::move(error);
    }
  }
  reportPhase("write");
  if (llvm::Error error = top::writeModule(module, output)) {
    return std::move(error);
  }
  auto object = describeModule(module);
  if (object) {
    (*object)["mlir"] = llvm::json::fixUTF8(output);
    (*object)["weights"] = llvm::json::fixUTF8(top::weightPathFor(output));
  }
  return object;
}

} // namespace tessera::tool
