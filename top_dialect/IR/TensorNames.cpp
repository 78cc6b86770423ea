//===- TensorNames.cpp - Names of tensors in tables -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TensorNames.h"

#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopConstOps.h"
#include "top_dialect/IR/TopDialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace tessera::top;

namespace {
/// Hands out names, each only once.
class UniqueNames {
public:
  StringRef take(StringRef wanted) {
    auto [it, isNew] = names.insert(wanted);
    for (unsigned i = 2; !isNew; ++i) {
      std::tie(it, isNew) = names.insert((wanted + "#" + Twine(i)).str());
    }
    return it->getKey();
  }

private:
  llvm::StringSet<> names;
};
} // namespace

static std::string deriveName(OpResult result) {
  Operation *op = result.getOwner();
  std::string name = getDisplayName(op->getLoc());
  if (name.empty()) {
    name = op->getName().stripDialect().str();
  }
  return op->getNumResults() == 1 ? name : name + ":" + std::to_string(result.getResultNumber());
}

void tessera::top::nameEveryTensor(Operation *function) {
  UniqueNames unique;
  if (auto interface = dyn_cast<FunctionOpInterface>(function)) {
    for (unsigned i = 0; i < interface.getNumArguments(); ++i) {
      if (auto name = interface.getArgAttrOfType<StringAttr>(i, TopDialect::kNameAttr)) {
        unique.take(name.getValue());
      }
    }
  }
  SmallVector<Operation *> ops;
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa_and_nonnull<TopDialect>(op->getDialect()) && op->getNumResults() &&
        !op->hasTrait<OpTrait::ConstantLike>()) {
      ops.push_back(op);
    }
  });
  // First take the names from the file, so that a derived name cannot take one of them.
  llvm::DenseMap<Value, StringRef> names;
  for (bool derived : {false, true}) {
    for (Operation *op : ops) {
      for (OpResult result : op->getResults()) {
        if (StringRef name = getTensorName(result); name.empty() == derived) {
          names[result] = unique.take(derived ? StringRef(deriveName(result)) : name);
        }
      }
    }
  }
  for (Operation *op : ops) {
    setTensorNames(op, llvm::map_to_vector(op->getResults(), [&](OpResult result) { return names[result]; }));
  }
}

std::string tessera::top::networkOf(ModuleOp module) {
  auto network = module->getAttrOfType<StringAttr>(kNetworkAttr);
  return network ? network.str() : "";
}

/// Returns the hash as 32 hex digits.
static std::string hashOf(ArrayRef<uint8_t> bytes) {
  llvm::XXH128_hash_t hash = llvm::xxh3_128bits(bytes);
  return llvm::formatv("{0:x-16}{1:x-16}", hash.high64, hash.low64).str();
}

/// Prints the module without the module attributes `left`.
static std::string textOf(ModuleOp module, ArrayRef<StringRef> left) {
  SmallVector<NamedAttribute> saved(module->getAttrs());
  for (StringRef name : left) {
    module->removeAttr(name);
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os);
  module->setAttrs(saved);
  return text;
}

std::string tessera::top::hashModule(ModuleOp module) {
  return hashOf(llvm::arrayRefFromStringRef(
      textOf(module, {TopDialect::kWeightFileAttr, TopDialect::kModelNameAttr, kNetworkAttr})));
}

std::string tessera::top::hashContents(ModuleOp module) {
  std::string text = textOf(
      module, {TopDialect::kWeightFileAttr, TopDialect::kWeightHashAttr, TopDialect::kModelNameAttr, kNetworkAttr});
  module.walk([&](WeightOp weight) {
    std::optional<TensorData> data = getConstantData(weight);
    text += data ? hashOf(llvm::arrayRefFromStringRef(StringRef(data->bytes.data(), data->bytes.size()))) : "none";
  });
  return hashOf(llvm::arrayRefFromStringRef(text));
}
