//===- ModuleIO.cpp - Reading and writing NAME_top.mlir with its weights ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/ModuleIO.h"

#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/KnownHashes.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/RegularFile.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopConstOps.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/WeightStore.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tessera::top;

template <typename... Args>
static llvm::Error fail(const char *format, Args &&...args) {
  return llvm::createStringError(llvm::formatv(format, std::forward<Args>(args)...).str());
}

std::string tessera::top::weightPathFor(StringRef mlirPath) {
  StringRef stem = llvm::sys::path::stem(mlirPath);
  stem.consume_back("_top");
  SmallString<128> path = llvm::sys::path::parent_path(mlirPath);
  llvm::sys::path::append(path, stem + "_weights.safetensors");
  return std::string(path);
}

static llvm::Error checkWeight(WeightOp op, WeightStore &store) {
  auto view = store.lookup(op.getKey());
  if (!view) {
    return fail("weight '{0}' is not in the weight file", op.getKey());
  }
  auto type = cast<RankedTensorType>(op.getType());
  if (view->elementType != type.getElementType() || !tessera::sameSizes(view->shape, type)) {
    return fail("weight '{0}' is {1} in the module, but {2} in the weight file", op.getKey(), type,
                RankedTensorType::get(view->shape, view->elementType));
  }
  return llvm::Error::success();
}

llvm::Error tessera::top::loadWeights(ModuleOp module, StringRef mlirPath) {
  WeightStore &store = module.getContext()->getOrLoadDialect<TopDialect>()->getWeightStore();
  SmallVector<WeightOp> weights;
  module.walk([&](WeightOp op) { weights.push_back(op); });
  auto name = module->getAttrOfType<StringAttr>(TopDialect::kWeightFileAttr);
  if (weights.empty() && !name) {
    return llvm::Error::success();
  }
  if (!name || name.getValue().empty() || llvm::sys::path::filename(name.getValue()) != name.getValue()) {
    return fail(
        "module '{0}' has top.weight ops, but no top.weight_file attribute with the name of a file in its folder",
        mlirPath);
  }
  auto hash = module->getAttrOfType<StringAttr>(TopDialect::kWeightHashAttr);
  if (!hash || hash.getValue().empty()) {
    return fail("module '{0}' lacks the attribute top.weight_hash", mlirPath);
  }
  SmallString<128> path = llvm::sys::path::parent_path(mlirPath);
  llvm::sys::path::append(path, name.getValue());
  if (!llvm::sys::fs::exists(path)) {
    return fail("weight file '{0}' is missing: it must be in the folder of '{1}' (model_transform writes both)", path,
                mlirPath);
  }
  if (llvm::Error error = store.open(path, hash.getValue())) {
    return error;
  }
  for (WeightOp op : weights) {
    if (llvm::Error error = checkWeight(op, store)) {
      return error;
    }
  }
  return llvm::Error::success();
}

/// Checks that all names are valid text. Names end up in messages, JSON and the .bmodel, and a module edited by hand
/// may contain what the importer never writes.
static llvm::Error checkTexts(ModuleOp module, StringRef mlirPath) {
  StringRef bad;
  auto check = [&](StringAttr text) {
    if (!llvm::json::isUTF8(text.getValue()) || text.getValue().contains('\0')) {
      bad = text.getValue();
    }
  };
  module.walk([&](Operation *op) {
    op->getAttrDictionary().walk(check);
    for (StringRef name : getNodeNames(op->getLoc())) {
      check(StringAttr::get(op->getContext(), name));
    }
  });
  return bad.data() == nullptr
             ? llvm::Error::success()
             : fail("'{0}' contains the name '{1}', which is not UTF-8 text", mlirPath, llvm::json::fixUTF8(bad));
}

llvm::Expected<OwningOpRef<ModuleOp>> tessera::top::readModule(StringRef mlirPath, MLIRContext &context) {
  context.getOrLoadDialect<TopDialect>();
  std::string messages;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
      llvm::raw_string_ostream os(messages);
      os << (messages.empty() ? "" : "; ");
      if (auto file = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>()) {
        os << file.getFilename().getValue() << ":" << file.getLine() << ":" << file.getColumn() << ": ";
      }
      os << diagnostic;
    }
  });
  if (!llvm::sys::fs::exists(mlirPath)) {
    return fail("no file '{0}'", mlirPath);
  }
  if (auto file = readRegularFile(mlirPath); !file) {
    return fail("cannot read '{0}': {1}", mlirPath, llvm::toString(file.takeError()));
  }
  auto module = parseSourceFile<ModuleOp>(mlirPath, ParserConfig(&context));
  if (!module) {
    return fail("'{0}' is not a valid Top module: {1}", mlirPath, messages);
  }
  if (llvm::Error error = checkTexts(*module, mlirPath)) {
    return error;
  }
  if (llvm::Error error = loadWeights(*module, mlirPath)) {
    return error;
  }
  return module;
}

static SmallVector<StringRef> weightKeys(ModuleOp module) {
  SmallVector<StringRef> keys;
  module.walk([&](WeightOp op) { keys.push_back(op.getKey()); });
  return keys;
}

static void nameWeightFile(ModuleOp module, StringRef name, StringRef hash) {
  Builder builder(module.getContext());
  module->setAttr(TopDialect::kWeightFileAttr, builder.getStringAttr(name));
  module->setAttr(TopDialect::kWeightHashAttr, builder.getStringAttr(hash));
}

static void nameNoWeightFile(ModuleOp module) {
  module->removeAttr(TopDialect::kWeightFileAttr);
  module->removeAttr(TopDialect::kWeightHashAttr);
}

static llvm::Expected<PendingFile> pendingText(ModuleOp module, StringRef path) {
  return PendingFile::write(
      path, [&](llvm::raw_ostream &os) { module->print(os, OpPrintingFlags().enableDebugInfo()), os << "\n"; });
}

/// Writes the module's weights to a pending file next to `mlirPath` and sets the attributes that refer to it.
static llvm::Expected<SavedWeights> pendingWeights(ModuleOp module, StringRef mlirPath) {
  WeightStore &store = module.getContext()->getOrLoadDialect<TopDialect>()->getWeightStore();
  std::string path = weightPathFor(mlirPath);
  auto weights = store.save(path, weightKeys(module));
  if (weights) {
    nameWeightFile(module, llvm::sys::path::filename(path), weights->hash);
  }
  return weights;
}

/// Moves the files, the weight file among them, to their final paths and remembers its hash.
static llvm::Error keep(MutableArrayRef<PendingFile> files, StringRef mlirPath, StringRef hash) {
  if (llvm::Error error = PendingFile::keep(files)) {
    return error;
  }
  if (std::optional<FileIdentity> written = FileIdentity::of(weightPathFor(mlirPath))) {
    rememberHash(*written, hash.str());
  }
  return llvm::Error::success();
}

llvm::Error tessera::top::writeModule(ModuleOp module, StringRef mlirPath) {
  auto weights = pendingWeights(module, mlirPath);
  if (!weights) {
    return weights.takeError();
  }
  auto text = pendingText(module, mlirPath);
  if (!text) {
    return text.takeError();
  }
  PendingFile both[] = {std::move(weights->file), std::move(*text)};
  return keep(both, mlirPath, weights->hash);
}

llvm::Error tessera::top::writeWeights(ModuleOp module, StringRef mlirPath, WeightFiles *known) {
  if (weightKeys(module).empty()) {
    nameNoWeightFile(module);
    return llvm::Error::success();
  }
  auto weights = pendingWeights(module, mlirPath);
  if (!weights) {
    return weights.takeError();
  }
  if (known) {
    auto [found, isNew] = known->try_emplace(weights->hash, llvm::sys::path::filename(weightPathFor(mlirPath)).str());
    if (!isNew) {
      nameWeightFile(module, found->second, weights->hash);
      return llvm::Error::success();
    }
  }
  return keep(weights->file, mlirPath, weights->hash);
}
