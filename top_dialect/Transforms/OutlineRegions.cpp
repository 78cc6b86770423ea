//===- OutlineRegions.cpp - Moves ops around control flow to functions ----===//
// SPDX-License-Identifier: Apache-2.0
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/SizeUpdates.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Transforms/CarryScans.h"
#include "top_dialect/Transforms/Passes.h"

namespace tessera::top {
#define GEN_PASS_DEF_OUTLINEREGIONSPASS
#include "top_dialect/Transforms/Passes.h.inc"

bool isControlFlow(mlir::Operation *op) { return llvm::isa<IfOp, LoopOp>(op); }

bool hasControlFlow(mlir::Operation *root) {
  auto found = root->walk([](mlir::Operation *op) {
    return isControlFlow(op) ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
  });
  return found.wasInterrupted();
}

namespace {
using namespace mlir;

bool isConstantOp(Operation *op) { return isa<ConstantOp, WeightOp>(op); }

/// Returns true for ops that the host executes between the parts.
bool staysBetweenParts(Operation *op) { return isControlFlow(op) || isa<BindOp>(op) || isSizeCast(op); }

/// Returns the name of a value, "" if it has none. A value that a loop carries is one variable, so it has the name of
/// the loop's result.
StringRef nameOf(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument) {
    return getTensorName(value);
  }
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast<LoopOp>(parent)) {
    constexpr unsigned kOthers = 2; // the number of the pass and the condition
    return argument.getArgNumber() < kOthers ? StringRef()
                                             : getTensorName(loop->getResult(argument.getArgNumber() - kOthers));
  }
  return isa<func::FuncOp>(parent) ? getInputName(argument) : StringRef();
}

/// A run of ops that one part computes, with the values that cross its borders.
struct Group {
  explicit Group(ArrayRef<Operation *> members) : ops(members) {
    DenseSet<Operation *> inside(ops.begin(), ops.end());
    for (Operation *op : ops) {
      for (Value operand : op->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        if (!producer || !(isConstantOp(producer) || inside.contains(producer))) {
          inputs.insert(operand);
        }
      }
      for (Value result : op->getResults()) {
        if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !inside.contains(user); })) {
          outputs.push_back(result);
        }
      }
    }
  }

  ArrayRef<Operation *> ops;
  llvm::SetVector<Value> inputs; ///< without constants
  SmallVector<Value> outputs;
};

class OutlineRegionsPass : public impl::OutlineRegionsPassBase<OutlineRegionsPass> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      function.walk([](LoopOp loop) { carryScans(loop); });
      if (hasControlFlow(function)) {
        outlineBlock(function.getBody().front(), function.getName(), symbols);
        function.walk([](Operation *op) {
          if (isConstantOp(op) && op->use_empty()) {
            op->erase();
          }
        });
      }
    }
  }

  /// Outlines the ops of |block| between, and within, its control flow. Constants stay, because yields may return them.
  void outlineBlock(Block &block, const Twine &name, SymbolTable &symbols) {
    std::string prefix = name.str();
    SmallVector<Operation *> open;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isConstantOp(&op)) {
        continue;
      }
      bool isTerminator = op.hasTrait<OpTrait::IsTerminator>();
      if (!isTerminator && !staysBetweenParts(&op)) {
        open.push_back(&op);
        continue;
      }
      outlineGroup(open, prefix, symbols);
      open.clear();
      if (isControlFlow(&op)) {
        outlineControl(&op, symbols);
      }
    }
  }

  void outlineControl(Operation *op, SymbolTable &symbols) {
    std::string name = getDisplayName(op->getLoc());
    name = name.empty() ? op->getName().stripDialect().str() : name;
    if (auto branch = dyn_cast<IfOp>(op)) {
      outlineBlock(branch.getThenRegion().front(), name + ".then", symbols);
      outlineBlock(branch.getElseRegion().front(), name + ".else", symbols);
    } else {
      outlineBlock(cast<LoopOp>(op).getBody().front(), name + ".body", symbols);
    }
  }

  /// Replaces |ops| by a call of a new function at the position of the last one.
  void outlineGroup(ArrayRef<Operation *> ops, StringRef name, SymbolTable &symbols) {
    if (ops.empty()) {
      return;
    }
    Group group(ops);
    OpBuilder builder(ops.back()->getContext());
    builder.setInsertionPointAfter(ops.back());
    if (!group.outputs.empty()) {
      func::FuncOp function = createFunction(group, name);
      symbols.insert(function);
      auto call = func::CallOp::create(builder, ops.front()->getLoc(), function, group.inputs.getArrayRef());
      auto names = llvm::map_to_vector(group.outputs, nameOf);
      if (llvm::any_of(names, [](StringRef known) { return !known.empty(); })) {
        setTensorNames(call, names);
      }
      for (auto [value, result] : llvm::zip_equal(group.outputs, call.getResults())) {
        value.replaceUsesWithIf(result, [&](OpOperand &use) { return !llvm::is_contained(ops, use.getOwner()); });
      }
      ++outlined;
    }
    for (Operation *op : llvm::reverse(ops)) {
      op->erase();
    }
  }

  func::FuncOp createFunction(const Group &group, StringRef name) {
    MLIRContext *context = &getContext();
    auto type = FunctionType::get(context, llvm::to_vector(ValueRange(group.inputs.getArrayRef()).getTypes()),
                                  llvm::to_vector(ValueRange(group.outputs).getTypes()));
    auto function = func::FuncOp::create(group.ops.front()->getLoc(), name, type);
    function.setPrivate();
    IRMapping mapping;
    Block *body = function.addEntryBlock();
    mapping.map(group.inputs.getArrayRef(), body->getArguments());
    for (auto [i, input] : llvm::enumerate(group.inputs)) {
      if (StringRef known = nameOf(input); !known.empty()) {
        function.setArgAttr(unsigned(i), TopDialect::kNameAttr, StringAttr::get(context, known));
      }
    }
    OpBuilder builder = OpBuilder::atBlockEnd(body);
    for (Operation *op : group.ops) {
      for (Value operand : op->getOperands()) {
        if (!mapping.contains(operand)) {
          mapping.map(operand, builder.clone(*operand.getDefiningOp())->getResult(0));
        }
      }
      builder.clone(*op, mapping);
    }
    auto results = llvm::map_to_vector(group.outputs, [&](Value value) { return mapping.lookup(value); });
    func::ReturnOp::create(builder, group.ops.back()->getLoc(), results);
    return function;
  }
};
} // namespace
} // namespace tessera::top
