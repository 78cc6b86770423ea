//===- LayoutAssignment.cpp - Channel-blocked or row-major ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Transforms/LayoutAssignment.h"

#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/IR/Pieces.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TensorTypes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace tessera::device {

bool canBlock(Value value, const LayoutPolicy &policy) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 4 && policy.canBlock(type.getElementType()) && Shape(type).isDetermined() &&
         Shape(type)[1].isKnown() && maxOf(countElements(type)) > 0;
}

namespace {

/// Layout in which an op should read one operand.
enum class Wanted { RowMajor, Blocked, Any };

/// The decision for one op.
struct Choice {
  bool blockedResult = false;
  SmallVector<Wanted> operands;
};

bool blocked(Value value) { return isBlocked(value.getType()); }

/// Returns true if |user| can probably read a blocked operand without a conversion; its own layout is decided later.
bool takesBlocked(Operation *user, const LayoutPolicy &policy) {
  auto layouts = dyn_cast<LayoutInterface>(user);
  return layouts && canBlock(user->getResult(0), policy) && layouts.canWriteBlocks();
}

bool anyUserTakesBlocked(Value value, const LayoutPolicy &policy) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) { return takesBlocked(user, policy); });
}

/// Returns true if the result of |op| should be blocked: an operand that the op iterates together with its result is
/// blocked, and either a reader wants blocks or unblocking the operand would not be cheaper than unblocking the result.
bool wantsBlocks(LayoutInterface op, const LayoutPolicy &policy) {
  Value result = op->getResult(0);
  auto operands = op->getOpOperands();
  auto carried =
      llvm::find_if(operands, [&](OpOperand &operand) { return op.carriesLayout(operand) && blocked(operand.get()); });
  if (carried == operands.end() || !canBlock(result, policy) || !op.canWriteBlocks()) {
    return false;
  }
  bool converts = op.getOperandLayout(*carried, /*blockedResult=*/false) == OperandLayout::Any;
  bool grows = likelyCount(countElements(carried->get())) < likelyCount(countElements(result));
  return !(converts || grows) || anyUserTakesBlocked(result, policy);
}

class LayoutAssigner {
public:
  explicit LayoutAssigner(const LayoutPolicy &policy) : policy(policy) {}

  LayoutCounts run(Operation *function) {
    SmallVector<Operation *> ops;
    // Pre-order: an op is decided after all ops before it, and before the ops in its regions.
    function->walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops) {
      if (op->getParentOp() && !isa<ModuleOp, func::FuncOp>(op)) {
        apply(op, decide(op));
      }
    }
    return counts;
  }

private:
  Choice decide(Operation *op) {
    Choice choice;
    choice.operands.assign(op->getNumOperands(), Wanted::RowMajor);
    if (auto conv = dyn_cast<ConvOp>(op)) {
      decideConv(conv, choice);
    } else if (auto layouts = dyn_cast<LayoutInterface>(op)) {
      choice.blockedResult = wantsBlocks(layouts, policy);
      for (OpOperand &operand : op->getOpOperands()) {
        choice.operands[operand.getOperandNumber()] = wantedOf(layouts, operand, choice.blockedResult);
      }
    }
    return choice;
  }

  Wanted wantedOf(LayoutInterface op, OpOperand &operand, bool blockedResult) {
    Wanted asResult = blockedResult ? Wanted::Blocked : Wanted::RowMajor;
    switch (op.getOperandLayout(operand, blockedResult)) {
    case OperandLayout::RowMajor:
      return Wanted::RowMajor;
    case OperandLayout::AsResult:
      return asResult;
    case OperandLayout::Any:
      break;
    }
    // Parts of a blocked concatenation become blocked too; constants stay as they are.
    bool follows = blockedResult && op.carriesLayout(operand) && canBlock(operand.get(), policy);
    return follows && !top::isConstant(operand.get()) ? Wanted::Blocked : Wanted::Any;
  }

  void decideConv(ConvOp conv, Choice &choice) {
    std::optional<LayoutPolicy::ConvInput> input;
    if (canBlock(conv.getX(), policy)) {
      input = policy.chooseConv(conv);
    }
    if (!input) {
      return;
    }
    choice.blockedResult = true;
    choice.operands[0] = *input == LayoutPolicy::ConvInput::Blocked ? Wanted::Blocked : Wanted::RowMajor;
    for (OpOperand &extra : conv.getExtrasMutable()) {
      choice.operands[extra.getOperandNumber()] = wantedOf(cast<LayoutInterface>(*conv), extra, /*blockedResult=*/true);
    }
  }

  void apply(Operation *op, const Choice &choice) {
    for (OpOperand &operand : op->getOpOperands()) {
      Wanted wanted = choice.operands[operand.getOperandNumber()];
      auto type = dyn_cast<RankedTensorType>(operand.get().getType());
      if (!type || wanted == Wanted::Any || isBlocked(type) == (wanted == Wanted::Blocked)) {
        continue;
      }
      operand.set(convert(operand.get(), wanted == Wanted::Blocked, op));
    }
    if (choice.blockedResult) {
      op->getResult(0).setType(getBlockedType(typeOf(op->getResult(0)), policy.block));
      ++counts.blocked;
    }
  }

  /// Returns |value| in the other layout, for |user| and all later ops of its block.
  Value convert(Value value, bool toBlocked, Operation *user) {
    Value &known = converted[{value, user->getBlock()}];
    if (known) {
      return known;
    }
    OpBuilder builder(user);
    RankedTensorType type = typeOf(value);
    RankedTensorType target = toBlocked ? getBlockedType(type, policy.block) : getRowMajorType(type);
    if (sameBytes(type, target)) {
      known = ReshapeOp::create(builder, value.getLoc(), target, value);
    } else {
      Attribute piece = identityPiece(type);
      known = CopyOp::create(builder, value.getLoc(), target, value, builder.getArrayAttr(piece), FloatAttr());
      ++counts.copies;
    }
    // Converting back gives the original.
    converted[{known, user->getBlock()}] = value;
    return converted[{value, user->getBlock()}];
  }

  const LayoutPolicy &policy;
  LayoutCounts counts;
  DenseMap<std::pair<Value, Block *>, Value> converted;
};

} // namespace

LayoutCounts assignLayouts(Operation *function, const LayoutPolicy &policy) {
  return LayoutAssigner(policy).run(function);
}

void splitEpilogue(ConvOp conv) {
  RankedTensorType y = typeOf(conv.getY());
  bool simple = llvm::all_of(conv.getExtras(), [&](Value extra) { return conv.canReadExtra(extra); });
  if (simple || conv.getEpilogue().empty()) {
    return;
  }
  OpBuilder builder(conv->getContext());
  builder.setInsertionPointAfter(conv);
  conv.getY().setType(tensorType(Shape(y).dims(), conv.getAccumulatorType()));
  SmallVector<Value> inputs{conv.getY()};
  llvm::append_range(inputs, conv.getExtras());
  auto map = MapOp::create(builder, conv.getLoc(), y, inputs);
  map.getBody().takeBody(conv.getEpilogue());
  conv.getExtrasMutable().clear();
  conv.getY().replaceAllUsesExcept(map.getY(), map);
  if (Attribute names = conv->removeAttr("top.outputs")) {
    map->setAttr("top.outputs", names);
  }
}

} // namespace tessera::device
