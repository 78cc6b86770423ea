//===- RoundOperands.cpp - Attention of 16-bit floats ---------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Transforms/RoundOperands.h"

#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/ScalarBodies.h"
#include "top_dialect/IR/TensorTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::device {

Type roundedBy(MapOp map) {
  Block &body = map.getBody().front();
  auto round = dyn_cast<arith::TruncFOp>(body.front());
  bool isOnly = round && round->getNextNode() == body.getTerminator() && map.getInputs().size() == 1 &&
                round.getIn() == body.getArgument(0) && body.getTerminator()->getOperand(0) == round.getOut();
  return isOnly && isNarrowFloat(round.getType()) ? round.getType() : Type();
}

/// Returns the one tensor that |op| only moves (reshape or copy); null for other ops.
static Value movedBy(Operation *op) {
  bool isMove = op && isa<ReshapeOp, CopyOp>(op) && op->getNumOperands() == 1;
  return isMove ? op->getOperand(0) : Value();
}

/// Returns true if only attention ops read |value| as q, k or v, directly or through reshapes and copies.
static bool onlyAttentionReads(Value value) {
  return llvm::all_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (movedBy(user)) {
      return onlyAttentionReads(user->getResult(0));
    }
    return isa<AttentionOp>(user) && use.getOperandNumber() < 3;
  });
}

static void retype(Value value, Type element) {
  value.setType(typeOf(value).clone(element));
  for (Operation *user : value.getUsers()) {
    if (movedBy(user)) {
      retype(user->getResult(0), element);
    }
  }
}

/// Creates a map that rounds the f32 |value|.
static MapOp roundByMap(Value value, Type element) {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  auto map = MapOp::create(builder, value.getLoc(), typeOf(value).clone(element), value);
  Block *body = builder.createBlock(&map.getBody(), {}, builder.getF32Type(), value.getLoc());
  Value narrow = arith::TruncFOp::create(builder, value.getLoc(), element, body->getArgument(0));
  YieldOp::create(builder, value.getLoc(), narrow);
  return map;
}

void roundOperand(OpOperand &operand, Type element) {
  if (typeOf(operand.get()).getElementType() == element) {
    return;
  }
  Value root = operand.get();
  while (Value moved = movedBy(root.getDefiningOp())) {
    root = moved;
  }
  if (!onlyAttentionReads(root)) {
    return operand.set(roundByMap(operand.get(), element).getY());
  }
  MapOp map = roundByMap(root, element);
  root.replaceAllUsesExcept(map.getY(), map);
  retype(map.getY(), element);
  if (auto sum = root.getDefiningOp<EpilogueInterface>()) {
    appendToEpilogue(sum, map);
  } else if (auto producer = root.getDefiningOp<MapOp>()) {
    inlineProducer(producer, map);
    producer.erase();
  }
}

} // namespace tessera::device
