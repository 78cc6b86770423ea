//===- OpenModule.cpp - Module of a subcommand ----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/OpenModule.h"

#include "codegen/Target/Registry.h"
#include "top_dialect/IR/KnownHashes.h"
#include "top_dialect/IR/ModuleIO.h"
#include "top_dialect/IR/State.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tool;

namespace {

/// The module that a session has read in advance.
struct Preloaded {
  std::string path;
  std::optional<top::FileIdentity> text, weights;
  OpenModule opened;

  bool isOf(const std::string &wanted) const {
    return opened.module && path == wanted && text == top::FileIdentity::of(path) &&
           weights == top::FileIdentity::of(top::weightPathFor(path));
  }
};

Preloaded &preloaded() {
  static Preloaded *of = new Preloaded; // never destroyed: contexts are not destroyed at exit
  return *of;
}

llvm::Expected<OpenModule> readAnew(const std::string &path) {
  DialectRegistry registry;
  codegen::registerFamilies(registry);
  registry.insert<arith::ArithDialect, func::FuncDialect>();
  OpenModule opened;
  opened.context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  opened.context->loadAllAvailableDialects();
  llvm::Expected<OwningOpRef<ModuleOp>> module = top::readModule(path, *opened.context);
  if (!module) {
    return module.takeError();
  }
  auto function = (*module)->lookupSymbol<func::FuncOp>("main");
  if (llvm::Error error = function ? top::verifyStates(function) : llvm::Error::success()) {
    return llvm::createStringError("'" + path + "' is not valid: " + llvm::toString(std::move(error)));
  }
  opened.module = std::move(*module);
  return opened;
}

} // namespace

llvm::Expected<OpenModule> tessera::tool::openModule(const std::string &path) {
  return preloaded().isOf(path) ? llvm::Expected<OpenModule>(std::move(preloaded().opened)) : readAnew(path);
}

void tessera::tool::preloadModule(const std::string &path) {
  if (preloaded().isOf(path)) {
    return;
  }
  preloaded().opened.module = nullptr; // must be destroyed before its context
  preloaded() = {};
  // Identify the files before reading them: files that change meanwhile then count as other files.
  Preloaded read{path, top::FileIdentity::of(path), top::FileIdentity::of(top::weightPathFor(path)), {}};
  llvm::Expected<OpenModule> opened = readAnew(path);
  if (!opened) {
    llvm::consumeError(opened.takeError());
    return;
  }
  read.opened = std::move(*opened);
  preloaded() = std::move(read);
}
