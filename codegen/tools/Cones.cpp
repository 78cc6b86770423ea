//===- Cones.cpp - Ops between given tensors and their results ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/Cones.h"

#include "codegen/Kernels/SizeTerms.h"
#include "quant/Transforms/Precision/OpKinds.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/SizeUpdates.h"
#include "top_dialect/IR/TopDialect.h"

#include "llvm/ADT/SetVector.h"

#include <set>

using namespace mlir;

namespace tessera::tool {
namespace {

/// Assumed work of an op with regions, which may run any number of times.
constexpr int64_t kRegionWork = 1'000'000;

struct Cone {
  OpResult root;
  llvm::SmallSetVector<Operation *, 4> ops; ///< without constants
  int64_t work = 0;
  size_t position = 0; ///< index among all cones, in program order
};

int64_t workOf(Operation *op) {
  int64_t elements = op->getNumRegions() ? kRegionWork : 0;
  for (Type type : op->getResultTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    elements += tensor && tensor.hasStaticShape() ? tensor.getNumElements() : 1;
  }
  return std::max(elements, quant::countMacs(op));
}

/// Returns the values that `op` reads, including those read in its regions.
SmallVector<Value> operandsOf(Operation *op) {
  SmallVector<Value> operands;
  op->walk([&](Operation *inner) { llvm::append_range(operands, inner->getOperands()); });
  return operands;
}

/// The ops that set sizes, by the symbol of the size.
using Setters = llvm::DenseMap<Attribute, Operation *>;

Setters settersOf(func::FuncOp network) {
  Setters setters;
  for (Operation &op : network.getBody().front()) {
    for (top::SizeSymbolAttr symbol : top::symbolsSetBy(&op)) {
      setters[symbol] = &op;
    }
  }
  return setters;
}

bool isConstant(Operation *op) { return op->getNumResults() && top::isConstant(op->getResult(0)); }

Cone coneOf(OpResult root, const Setters &setters) {
  Cone cone{root, {}};
  SmallVector<Operation *> pending = {root.getOwner()};
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val();
    bool isNew = !isConstant(op) && cone.ops.insert(op);
    if (!isNew) {
      continue;
    }
    cone.work += workOf(op);
    for (top::SizeSymbolAttr symbol : kernels::symbolsOf(op)) {
      if (Operation *setter = setters.lookup(symbol)) {
        pending.push_back(setter);
      }
    }
    for (Value operand : operandsOf(op)) {
      Operation *def = operand.getDefiningOp();
      if (def && def->getBlock() == root.getOwner()->getBlock()) {
        pending.push_back(def);
      }
    }
  }
  return cone;
}

/// Returns the argument with the name of `value`, added by giveOperands(); null if there is none.
Value givenFor(func::FuncOp network, Value value) {
  auto result = dyn_cast<OpResult>(value);
  StringRef name = result ? top::getTensorName(result) : "";
  for (BlockArgument argument : network.getArguments()) {
    auto own = network.getArgAttrOfType<StringAttr>(argument.getArgNumber(), top::TopDialect::kNameAttr);
    if (own && !name.empty() && own.getValue() == name) {
      return argument;
    }
  }
  return {};
}

/// Returns one cone for each given tensor and each result of the network.
SmallVector<Cone> conesOf(func::FuncOp network) {
  llvm::StringSet<> given;
  for (unsigned i = 0; i < network.getNumArguments(); ++i) {
    if (auto name = network.getArgAttrOfType<StringAttr>(i, top::TopDialect::kNameAttr)) {
      given.insert(name.getValue());
    }
  }
  Setters setters = settersOf(network);
  Operation *end = network.getBody().front().getTerminator();
  SmallVector<Cone> cones;
  for (Operation &op : network.getBody().front().without_terminator()) {
    for (OpResult result : op.getResults()) {
      bool isRoot = given.contains(top::getTensorName(result)) || llvm::is_contained(end->getOperands(), result);
      if (isRoot && !top::isConstant(result)) {
        cones.push_back(coneOf(result, setters));
        cones.back().position = cones.size();
      }
    }
  }
  return cones;
}

} // namespace

/// Describes a cone by its op names and the given tensors that it reads.
static llvm::json::Object describe(func::FuncOp network, const Cone &cone) {
  std::set<std::string> ops, reads;
  for (Operation *op : cone.ops) {
    ops.insert(op->getName().stripDialect().str());
    for (Value operand : operandsOf(op)) {
      auto argument = dyn_cast<BlockArgument>(operand);
      if (argument && argument.getOwner() == &network.getBody().front()) {
        auto name = network.getArgAttrOfType<StringAttr>(argument.getArgNumber(), top::TopDialect::kNameAttr);
        reads.insert(name ? llvm::json::fixUTF8(name.getValue()) : "");
      }
    }
  }
  return llvm::json::Object{{"ops", llvm::json::Array(ops)}, {"reads", llvm::json::Array(reads)}};
}

llvm::json::Object keepCheapCones(func::FuncOp network, int64_t budget, const llvm::StringSet<> &only) {
  Block &block = network.getBody().front();
  SmallVector<Cone> cones = conesOf(network);
  llvm::sort(cones,
             [](const Cone &a, const Cone &b) { return std::tie(a.work, a.position) < std::tie(b.work, b.position); });
  llvm::DenseSet<Operation *> kept;
  llvm::json::Object described;
  for (Cone &cone : cones) {
    Value given = givenFor(network, cone.root);
    StringRef name = top::getTensorName(cone.root);
    bool isWanted = only.empty() || only.contains(name);
    budget -= isWanted ? cone.work : 0;
    if (given && (!isWanted || budget < 0)) {
      cone.root.replaceAllUsesWith(given);
      continue;
    }
    kept.insert(cone.ops.begin(), cone.ops.end());
    described[llvm::json::fixUTF8(name)] = describe(network, cone);
  }
  SmallVector<Operation *> ops = llvm::to_vector(llvm::make_pointer_range(block.without_terminator()));
  for (Operation *op : llvm::reverse(ops)) {
    if (!kept.contains(op) && op->use_empty()) {
      op->erase();
    }
  }
  return described;
}

} // namespace tessera::tool
