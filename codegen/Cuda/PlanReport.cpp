//===- PlanReport.cpp - Reports the tiles of contractions -----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/PlanReport.h"

#include "codegen/Cuda/Contraction/TilePlan.h"
#include "codegen/Cuda/HostDevice.h"
#include "codegen/Cuda/IR/CudaDialect.h"
#include "codegen/Kernels/BuildIdentity.h"
#include "top_dialect/IR/Names.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace tessera::cuda {
namespace {

using llvm::json::Array, llvm::json::Object;

std::string textOf(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

/// The cache of tiles that were measured on this machine's device with kernels of this build of the compiler.
class MeasuredTiles {
public:
  MeasuredTiles(codegen::FileCache &cache, std::string device) : cache(cache), device(std::move(device)) {}

  std::optional<std::string> lookup(StringRef contraction) const {
    return isOff() ? std::nullopt : cache.lookup(keyOf(contraction));
  }
  void insert(StringRef contraction, StringRef tile) {
    if (!isOff()) {
      cache.insert(keyOf(contraction), tile);
    }
  }

private:
  bool isOff() const { return device.empty() || kernels::buildIdentity().empty(); }
  std::string keyOf(StringRef contraction) const {
    std::string text = (contraction + "\n" + device + "\n" + kernels::buildIdentity()).str();
    llvm::XXH128_hash_t hash = llvm::xxh3_128bits(llvm::arrayRefFromStringRef(text));
    return llvm::formatv("{0:x-16}{1:x-16}-tile", hash.high64, hash.low64);
  }

  codegen::FileCache &cache;
  std::string device;
};

/// Returns the ops by cuda.product, in program order.
llvm::MapVector<StringRef, SmallVector<Operation *>> contractionsOf(ArrayRef<codegen::Subnet> subnets) {
  llvm::MapVector<StringRef, SmallVector<Operation *>> products;
  for (const codegen::Subnet &subnet : subnets) {
    func::FuncOp function = subnet.function;
    for (Operation &op : function.getBody().front()) {
      if (auto contraction = op.getAttrOfType<StringAttr>(CudaDialect::kProductAttr)) {
        products[contraction.getValue()].push_back(&op);
      }
    }
  }
  return products;
}

} // namespace

llvm::Expected<Object> planReport(ArrayRef<codegen::Subnet> subnets, const codegen::CompileOptions &options,
                                  codegen::FileCache &cache) {
  llvm::MapVector<StringRef, SmallVector<Operation *>> products = contractionsOf(subnets);
  const bool tunes = options.candidates || options.isMeasured;
  std::string device = tunes ? deviceIdentity() : "";
  MeasuredTiles measured(cache, device);
  Array entries;
  for (auto &[contraction, ops] : products) {
    Array layers;
    for (Operation *op : ops) {
      layers.push_back(top::getDisplayName(op->getLoc()));
    }
    std::string tile = textOf(tileOf(ops.front()));
    Object entry{{"product", contraction}, {"layers", std::move(layers)}, {"tile", tile}};
    if (auto all = ops.front()->getAttrOfType<ArrayAttr>(CudaDialect::kCandidatesAttr)) {
      if (std::optional<std::string> known = measured.lookup(contraction)) {
        entry["measured"] = *known;
      } else {
        Array candidates;
        llvm::for_each(all, [&](Attribute each) { candidates.push_back(textOf(each)); });
        entry["candidates"] = std::move(candidates);
      }
    }
    if (options.isMeasured) {
      measured.insert(contraction, tile);
    }
    entries.push_back(std::move(entry));
  }
  if (!options.plan.empty() && !subnets.empty()) {
    llvm::Expected<TilePlan> plan = readTilePlan(options.plan);
    if (!plan) {
      return plan.takeError();
    }
    auto strangers = llvm::count_if(*plan, [&](const auto &each) { return !products.contains(each.first()); });
    if (strangers) {
      func::FuncOp function = subnets.front().function;
      emitWarning(UnknownLoc::get(function.getContext()))
          << "the plan '" << options.plan << "' has tiles of " << strangers << " products that the model does not have";
    }
  }
  Object report{{"products", std::move(entries)}};
  if (tunes) {
    report["device"] = device;
  }
  return report;
}

} // namespace tessera::cuda
