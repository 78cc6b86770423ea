//===- IrDump.cpp - Dumps of the IR after every pass ----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Target/IrDump.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "top_dialect/IR/PendingFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

class Watch : public PassInstrumentation {
public:
  Watch(StringRef phase, IrObserver observer) : phase(phase), observer(std::move(observer)) {}

private:
  void runAfterPass(Pass *pass, Operation *op) override {
    ModuleOp module = dyn_cast<ModuleOp>(op);
    // Adaptors, which run pipelines on nested ops, do not have an argument.
    if (!pass->getArgument().empty()) {
      observer(module ? module : op->getParentOfType<ModuleOp>(), phase + "-" + pass->getArgument().str());
    }
  }

  std::string phase;
  IrObserver observer;
};

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

} // namespace

void watch(PassManager &passes, StringRef phase, const IrObserver &observer) {
  if (observer) {
    passes.addInstrumentation(std::make_unique<Watch>(phase, observer));
  }
}

void IrDump::operator()(ModuleOp module, StringRef phase) {
  if (failure.empty()) {
    failure = llvm::toString(write(module, phase));
  }
}

llvm::Error IrDump::check() const {
  return failure.empty() ? llvm::Error::success() : llvm::createStringError(failure);
}

llvm::Error IrDump::write(ModuleOp module, StringRef phase) {
  if (textOf(module) == last) {
    return llvm::Error::success();
  }
  if (std::error_code code = llvm::sys::fs::create_directories(folder)) {
    return llvm::createStringError("failed to create the folder '" + folder + "': " + code.message());
  }
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, llvm::formatv("{0:d2}-{1}.mlir", number++, phase).str());
  if (llvm::Error error = top::writeWeights(module, path, &weights)) {
    return error;
  }
  last = textOf(module); // writeWeights() changed the paths of the weights
  auto text = top::PendingFile::write(path, [&](llvm::raw_ostream &os) {
    module->print(os, OpPrintingFlags().enableDebugInfo());
    os << "\n";
  });
  return text ? top::PendingFile::keep(*text) : text.takeError();
}

} // namespace tessera::codegen
