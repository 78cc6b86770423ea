//===- Instrument.cpp - Top tensors in a .bmodel --------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/Instrument.h"

#include "codegen/Pipelines/Prepare.h"
#include "device_dialect/IR/DeviceMoveOps.h"
#include "device_dialect/Transforms/Addresses.h"
#include "quant/Transforms/Precision/Decisions.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopConstOps.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/TopOps.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace tessera::codegen {
namespace {

bool isFloat(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isa<FloatType>(type.getElementType());
}

StringRef inputName(func::FuncOp function, unsigned index) {
  auto name = function.getArgAttrOfType<StringAttr>(index, top::TopDialect::kNameAttr);
  return name ? name.getValue() : StringRef();
}

/// Returns the values that INT8 would store as integers if every tensor had a range. The decision for slices depends on
/// the actual ranges, and other types become f32 later: both count as integers.
llvm::DenseSet<Value> findIntegers(func::FuncOp function) {
  llvm::DenseSet<Value> found;
  const Quantization result = madeUp(function, quant::Precision::INT8);
  auto decisions = quant::decide(function, result.table, result.choices, result.options.precision);
  if (!decisions) {
    llvm::consumeError(decisions.takeError());
  }
  function.walk([&](Operation *op) {
    for (Value value : op->getResults()) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (!decisions || (type && !type.getElementType().isF32()) || isa<top::SliceOp>(op)) {
        found.insert(value);
      }
    }
  });
  if (decisions) {
    for (const auto &[value, form] : decisions->tensors) {
      found.insert(value);
    }
  } else {
    found.insert(function.getArguments().begin(), function.getArguments().end());
  }
  return found;
}

/// Immediate post-dominators of a block's ops in the data-flow graph.
class Gates {
public:
  explicit Gates(Block &block) : block(block) {
    for (Operation &op : llvm::reverse(block)) {
      if (!op.hasTrait<OpTrait::IsTerminator>()) {
        Operation *gate = meetOfReaders(op.getResults());
        gates[&op] = gate;
        depths[&op] = depthOf(gate) + 1;
      }
    }
  }

  /// Returns the name of the nearest float tensor through which all effects of |values| pass.
  std::string nameOf(ValueRange values) const {
    for (Operation *gate = meetOfReaders(values); gate; gate = gates.lookup(gate)) {
      if (gate->getNumResults() == 1 && isFloat(gate->getResult(0))) {
        if (StringRef name = top::getTensorName(gate->getResult(0)); !name.empty()) {
          return name.str();
        }
      }
    }
    return "";
  }

private:
  /// Returns the depth of an op; the end of the block (null) has depth 0.
  unsigned depthOf(Operation *op) const { return op ? depths.lookup(op) : 0; }

  Operation *meetOfReaders(ValueRange values) const {
    std::optional<Operation *> met;
    for (Value value : values) {
      for (Operation *user : value.getUsers()) {
        Operation *reader = block.findAncestorOpInBlock(*user);
        reader = reader->hasTrait<OpTrait::IsTerminator>() ? nullptr : reader;
        met = met ? meet(*met, reader) : reader;
      }
    }
    return met.value_or(nullptr);
  }

  Operation *meet(Operation *a, Operation *b) const {
    while (a != b) {
      Operation *&deeper = depthOf(a) >= depthOf(b) ? a : b;
      deeper = gates.lookup(deeper);
    }
    return a;
  }

  Block &block;
  llvm::DenseMap<Operation *, Operation *> gates;
  llvm::DenseMap<Operation *, unsigned> depths; ///< 1 for the last ops
};

InstrumentedTensor describe(StringRef name, StringRef op, Value value) {
  InstrumentedTensor tensor;
  tensor.name = name.str();
  tensor.op = op.str();
  for (Dim size : Shape(value).dims()) {
    tensor.shape.push_back(likelyOf(size));
    if (!Shape(value).isKnown()) {
      tensor.sizes.push_back(toText(size));
    }
  }
  return tensor;
}

/// Returns the tensor name of |root|; empty if it has none.
StringRef nameOf(func::FuncOp function, Value root) {
  auto argument = dyn_cast<BlockArgument>(root);
  return argument ? inputName(function, argument.getArgNumber()) : top::getTensorName(root);
}

} // namespace

std::vector<std::string> listFloatNames(func::FuncOp function) {
  std::vector<std::string> names;
  for (BlockArgument argument : function.getArguments()) {
    if (isFloat(argument)) {
      names.push_back(inputName(function, argument.getArgNumber()).str());
    }
  }
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Value result : op->getResults()) {
      if (StringRef name = top::getTensorName(result); !name.empty() && isFloat(result) && !top::isConstant(result)) {
        names.push_back(name.str());
      }
    }
  });
  return names;
}

std::vector<InstrumentedTensor> listInstrumented(func::FuncOp function) {
  std::vector<InstrumentedTensor> instrumented;
  const llvm::DenseSet<Value> integers = findIntegers(function);
  const Gates gates(function.getBody().front());
  for (BlockArgument argument : function.getArguments()) {
    if (isFloat(argument)) {
      instrumented.push_back(describe(inputName(function, argument.getArgNumber()), "input", argument));
      instrumented.back().source = instrumented.back().name; // whether an op reads it or not
      instrumented.back().isInteger = integers.contains(argument);
      instrumented.back().gate = gates.nameOf(argument);
    }
  }
  for (Operation &op : function.getBody().front()) {
    for (Value result : op.getResults()) {
      if (StringRef name = top::getTensorName(result); !name.empty() && isFloat(result) && !top::isConstant(result)) {
        instrumented.push_back(describe(name, op.getName().getStringRef(), result));
        instrumented.back().isInteger = integers.contains(result);
        instrumented.back().gate = gates.nameOf(result);
      }
    }
  }
  return instrumented;
}

std::vector<std::pair<std::string, std::string>> listLogits(func::FuncOp function) {
  std::vector<std::pair<std::string, std::string>> logits;
  for (auto [i, value] : llvm::enumerate(function.getBody().front().getTerminator()->getOperands())) {
    Operation *op = value.getDefiningOp();
    while (isa_and_nonnull<top::ReshapeOp, top::TransposeOp>(op)) {
      op = op->getOperand(0).getDefiningOp();
    }
    auto output = function.getResultAttrOfType<StringAttr>(i, top::TopDialect::kNameAttr);
    if (!isa_and_nonnull<top::SigmoidOp>(op) || !output) {
      continue;
    }
    Value read = op->getOperand(0);
    auto argument = dyn_cast<BlockArgument>(read);
    StringRef name = argument ? inputName(function, argument.getArgNumber()) : top::getTensorName(read);
    if (!name.empty()) {
      logits.emplace_back(output.str(), name.str());
    }
  }
  return logits;
}

void nameEveryLayer(func::FuncOp function) {
  llvm::StringSet<> known;
  for (BlockArgument argument : function.getArguments()) {
    known.insert(inputName(function, argument.getArgNumber()));
  }
  for (Operation &op : function.getBody().front().without_terminator()) {
    SmallVector<std::string> names;
    for (OpResult result : op.getResults()) {
      std::string name = top::getTensorName(result).str(), nodes = top::getDisplayName(op.getLoc());
      if (name.empty()) {
        name = nodes.empty() ? op.getName().getStringRef().str() : nodes;
      }
      std::string wanted = name;
      for (unsigned count = 2; !top::isConstant(result) && !known.insert(name).second; ++count) {
        name = wanted + "#" + std::to_string(count);
      }
      names.push_back(top::isConstant(result) ? "" : name);
    }
    top::setTensorNames(&op, SmallVector<StringRef>(names.begin(), names.end()));
  }
}

void findSources(func::FuncOp function, std::vector<InstrumentedTensor> &instrumented) {
  llvm::StringMap<Value> byName;
  for (BlockArgument argument : function.getArguments()) {
    byName.try_emplace(inputName(function, argument.getArgNumber()), argument);
  }
  for (Operation &op : function.getBody().front()) {
    for (Value result : op.getResults()) {
      if (StringRef name = top::getTensorName(result); !name.empty()) {
        byName.try_emplace(name, result);
      }
    }
  }
  // A named view stands for an unnamed root: the step that writes the root lists the view too.
  llvm::DenseMap<Value, std::string> views;
  for (InstrumentedTensor &tensor : instrumented) {
    auto it = byName.find(tensor.name);
    if (it == byName.end()) {
      continue;
    }
    Value root = device::withoutReshapes(it->second);
    tensor.isConstant = top::isConstant(root);
    StringRef name = nameOf(function, root);
    tensor.source = tensor.isConstant ? ""
                    : name.empty()    ? views.try_emplace(root, tensor.name).first->second
                                      : name.str();
  }
}

} // namespace tessera::codegen
