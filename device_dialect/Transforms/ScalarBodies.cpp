//===- ScalarBodies.cpp - Combining scalar regions ------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Transforms/ScalarBodies.h"

#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Names.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace tessera::device {

/// Returns the op in |block| that equals the constant |wanted|, or null.
static Operation *findConstant(Block &block, Operation *wanted) {
  for (Operation &op : block) {
    if (op.getName() == wanted->getName() && op.getAttrDictionary() == wanted->getAttrDictionary() &&
        op.getResultTypes() == wanted->getResultTypes()) {
      return &op;
    }
  }
  return nullptr;
}

Value inlineBody(OpBuilder &builder, Block &body, ValueRange arguments) {
  IRMapping mapping;
  mapping.map(body.getArguments(), arguments);
  Block *target = builder.getInsertionBlock();
  for (Operation &op : body.without_terminator()) {
    if (!op.hasTrait<OpTrait::ConstantLike>()) {
      builder.clone(op, mapping);
      continue;
    }
    Operation *constant = findConstant(*target, &op);
    if (!constant) {
      // Insert at the beginning of the block, before every user.
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(target);
      constant = builder.clone(op);
    }
    mapping.map(op.getResult(0), constant->getResult(0));
  }
  return mapping.lookup(cast<YieldOp>(body.getTerminator()).getValues().front());
}

int64_t bodySize(Block &body) {
  return llvm::count_if(body.without_terminator(), [](Operation &op) { return !op.hasTrait<OpTrait::ConstantLike>(); });
}

bool isCheap(Block &body) {
  constexpr int64_t kCheapOps = 4;
  bool simple = llvm::none_of(body.without_terminator(), [](Operation &op) {
    return isa<math::MathDialect>(op.getDialect()) ||
           isa<arith::DivFOp, arith::DivSIOp, arith::DivUIOp, arith::RemFOp>(op);
  });
  return simple && bodySize(body) <= kCheapOps;
}

/// Returns the epilogue of |producer|; turns an empty one into the identity.
static Block &epilogueBlock(EpilogueInterface producer) {
  Region &region = producer.getEpilogueRegion();
  if (region.empty()) {
    OpBuilder builder(producer->getContext());
    Block *block = builder.createBlock(&region, region.end(), producer.getAccumulatorType(), producer->getLoc());
    YieldOp::create(builder, producer->getLoc(), ValueRange(block->getArgument(0)));
  }
  return region.front();
}

void appendToEpilogue(EpilogueInterface producer, MapOp map) {
  Operation *op = producer;
  Block &block = epilogueBlock(producer);
  auto yield = cast<YieldOp>(block.getTerminator());
  SmallVector<Value> extras(producer.getEpilogueOperands()), arguments;
  for (Value input : map.getInputs()) {
    if (input == op->getResult(0)) {
      arguments.push_back(yield.getValues().front());
      continue;
    }
    size_t index = llvm::find(extras, input) - extras.begin();
    if (index == extras.size()) {
      extras.push_back(input);
      block.addArgument(scalarType(cast<RankedTensorType>(input.getType()).getElementType()), op->getLoc());
    }
    arguments.push_back(block.getArgument(1 + index));
  }
  OpBuilder builder(yield);
  yield->setOperand(0, inlineBody(builder, map.getBody().front(), arguments));
  op->moveBefore(map);
  producer.setEpilogueOperands(extras);
  op->removeAttr("top.outputs");
  top::copyNames({op, map}, op);
  op->getResult(0).setType(map.getY().getType());
  map.getY().replaceAllUsesWith(op->getResult(0));
  map.erase();
}

MapOp splitEpilogue(EpilogueInterface producer) {
  Operation *op = producer;
  Value result = op->getResult(0);
  auto type = cast<RankedTensorType>(result.getType());
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  SmallVector<Value> inputs = {result};
  llvm::append_range(inputs, producer.getEpilogueOperands());
  auto map = MapOp::create(builder, op->getLoc(), type, inputs);
  map.getBody().takeBody(producer.getEpilogueRegion());
  top::copyNames(op, map);
  op->removeAttr("top.outputs");
  producer.setEpilogueOperands({});
  result.replaceAllUsesExcept(map.getY(), map);
  result.setType(type.clone(producer.getAccumulatorType()));
  return map;
}

MapOp inlineProducer(MapOp producer, MapOp consumer) {
  SmallVector<Value> inputs;
  auto place = [&](Value input) {
    size_t index = llvm::find(inputs, input) - inputs.begin();
    if (index == inputs.size()) {
      inputs.push_back(input);
    }
    return index;
  };
  SmallVector<size_t> outer, inner;
  for (Value input : consumer.getInputs()) {
    outer.push_back(input == producer.getY() ? 0 : place(input));
  }
  for (Value input : producer.getInputs()) {
    inner.push_back(place(input));
  }
  OpBuilder builder(consumer);
  auto fused = MapOp::create(builder, consumer.getLoc(), consumer.getY().getType(), inputs);
  Block *block = builder.createBlock(&fused.getBody());
  for (Value input : inputs) {
    block->addArgument(scalarType(cast<RankedTensorType>(input.getType()).getElementType()), consumer.getLoc());
  }
  auto arguments = [&](ArrayRef<size_t> places) {
    return llvm::map_to_vector(places, [&](size_t place) { return Value(block->getArgument(place)); });
  };
  Value produced = inlineBody(builder, producer.getBody().front(), arguments(inner));
  SmallVector<Value> outerArguments = arguments(outer);
  for (auto [argument, input] : llvm::zip_equal(outerArguments, consumer.getInputs())) {
    argument = input == producer.getY() ? produced : argument;
  }
  Value result = inlineBody(builder, consumer.getBody().front(), outerArguments);
  YieldOp::create(builder, consumer.getLoc(), result);
  top::copyNames({producer, consumer}, fused);
  consumer.getY().replaceAllUsesWith(fused.getY());
  consumer.erase();
  return fused;
}

} // namespace tessera::device
