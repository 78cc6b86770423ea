//===- TilePlan.cpp - Reads plans of tiles from JSON ----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/Contraction/TilePlan.h"

#include "top_dialect/IR/Json.h"
#include "top_dialect/IR/RegularFile.h"

#include "llvm/Support/MemoryBuffer.h"

namespace tessera::cuda {
namespace {

llvm::Expected<TilePlan> parse(llvm::StringRef text) {
  llvm::Expected<llvm::json::Value> json = top::parseJson(text);
  if (!json) {
    return json.takeError();
  }
  const llvm::json::Object *root = json->getAsObject();
  const llvm::json::Array *products = root ? root->getArray("products") : nullptr;
  if (!products) {
    return llvm::createStringError("is not an object with a list 'products'");
  }
  TilePlan plan;
  for (const llvm::json::Value &each : *products) {
    const llvm::json::Object *entry = each.getAsObject();
    std::optional<llvm::StringRef> contraction, tile;
    if (entry) {
      contraction = entry->getString("product"), tile = entry->getString("tile");
    }
    if (!contraction || !tile) {
      return llvm::createStringError("an entry of 'products' does not have the strings 'product' and 'tile'");
    }
    if (!plan.try_emplace(*contraction, tile->str()).second) {
      return llvm::createStringError("product '" + *contraction + "' has two tiles");
    }
  }
  return plan;
}

} // namespace

llvm::Expected<TilePlan> readTilePlan(llvm::StringRef path) {
  auto fail = [&](llvm::Error error) {
    return llvm::createStringError("the plan '" + path + "': " + llvm::toString(std::move(error)));
  };
  auto file = top::readRegularFile(path);
  if (!file) {
    return fail(file.takeError());
  }
  llvm::Expected<TilePlan> plan = parse((*file)->getBuffer());
  return plan ? std::move(plan) : llvm::Expected<TilePlan>(fail(plan.takeError()));
}

} // namespace tessera::cuda
