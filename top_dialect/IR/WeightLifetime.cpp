//===- WeightLifetime.cpp - Dropping weights that are no longer used ------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/WeightLifetime.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TopConstOps.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/WeightStore.h"

using namespace mlir;
using namespace tessera::top;

static WeightStore &storeOf(MLIRContext *context) { return context->getOrLoadDialect<TopDialect>()->getWeightStore(); }

SoleHolder::SoleHolder(ModuleOp module) : context(module.getContext()) {
  storeOf(context).setSoleHolder(module.getOperation());
}

SoleHolder::~SoleHolder() { storeOf(context).setSoleHolder(nullptr); }

void tessera::top::dropUnheldWeights(Operation *op) {
  auto module = isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  WeightStore &store = storeOf(op->getContext());
  if (!module || store.getSoleHolder() != module.getOperation()) {
    return;
  }
  llvm::StringSet<> held;
  module.walk([&](WeightOp weight) { held.insert(weight.getKey()); });
  store.retain(held);
}

void tessera::top::releaseWeight(Value constant) {
  if (auto weight = constant.getDefiningOp<WeightOp>()) {
    storeOf(weight.getContext()).release(weight.getKey());
  }
}

Value tessera::top::createLazyConstant(OpBuilder &builder, Location loc, RankedTensorType type,
                                       std::function<std::vector<char>()> make, StringRef hint) {
  if (byteSize(type) <= kMaxInlineBytes) {
    return createConstant(builder, loc, type, make(), hint);
  }
  std::string key = storeOf(builder.getContext()).addLazily(hint, type, std::move(make));
  return WeightOp::create(builder, loc, type, builder.getStringAttr(key));
}
