//===- Outline.cpp - Subnets as separate functions ------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Partition/Outline.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace tessera::partition {
namespace {

/// Clones a constant, or a view of one, where it is used.
Value cloneConstant(OpBuilder &builder, Value value, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value)) {
    return known;
  }
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands()) {
    cloneConstant(builder, operand, mapping);
  }
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

} // namespace

Outlined outline(func::FuncOp from, ArrayRef<Operation *> ops, ArrayRef<Value> inputs, ArrayRef<Value> outputs) {
  Outlined result;
  MLIRContext *context = from.getContext();
  auto outer = from->getParentOfType<ModuleOp>();
  result.module = ModuleOp::create(outer.getLoc());
  (*result.module)->setDiscardableAttrs(outer->getDiscardableAttrDictionary());
  OpBuilder builder(context);
  builder.setInsertionPointToEnd(result.module->getBody());
  auto typesOf = [](ArrayRef<Value> values) {
    return llvm::map_to_vector(values, [](Value value) { return value.getType(); });
  };
  auto type = builder.getFunctionType(typesOf(inputs), typesOf(outputs));
  result.function = func::FuncOp::create(builder, from.getLoc(), "main", type);
  result.function->setDiscardableAttrs(from->getDiscardableAttrDictionary());
  for (auto [index, input] : llvm::enumerate(inputs)) {
    if (auto argument = dyn_cast<BlockArgument>(input)) { // with its name
      result.function.setArgAttrs(unsigned(index), from.getArgAttrDict(argument.getArgNumber()));
    }
  }
  Block *body = result.function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  IRMapping mapping;
  mapping.map(inputs, body->getArguments());
  for (Operation *op : ops) {
    for (Value operand : op->getOperands()) {
      if (!mapping.contains(operand)) {
        cloneConstant(builder, operand, mapping);
      }
    }
    result.origins[builder.clone(*op, mapping)] = op;
  }
  SmallVector<Value> results;
  for (Value output : outputs) {
    results.push_back(mapping.contains(output) ? mapping.lookup(output) : cloneConstant(builder, output, mapping));
  }
  func::ReturnOp::create(builder, from.getLoc(), results);
  return result;
}

Operation *originOf(const Outlined &outlined, Operation *op) {
  while (op && !outlined.origins.contains(op)) {
    op = op->getNumResults() && !op->use_empty() ? *op->user_begin() : nullptr;
  }
  return op ? outlined.origins.lookup(op) : nullptr;
}

} // namespace tessera::partition
