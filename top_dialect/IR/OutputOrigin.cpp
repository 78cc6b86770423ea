//===- OutputOrigin.cpp - The op that computes an output ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/OutputOrigin.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TopOps.h"

using namespace mlir;
using namespace tessera::top;

static StringRef findProbabilityOp(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<ReshapeOp, TransposeOp, SliceOp>(op)) {
    return findProbabilityOp(op->getOperand(0));
  }
  if (!isa_and_nonnull<ConcatOp>(op)) {
    return isa_and_nonnull<SigmoidOp>(op) ? "sigmoid" : isa_and_nonnull<SoftmaxOp>(op) ? "softmax" : "";
  }
  StringRef found;
  for (Value operand : op->getOperands()) {
    StringRef name = findProbabilityOp(operand);
    if (name.empty()) {
      return "";
    }
    found = found.empty() || found == name ? name : "softmax";
  }
  return found;
}

StringRef tessera::top::findOutputOrigin(Value value) {
  return isa<BlockArgument>(value) || isConstant(value) ? "none" : findProbabilityOp(value);
}
