//===- LowerQuantised.cpp - Integer ops of a quantised function -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/Quantized.h"
#include "device_dialect/IR/Exact.h"
#include "top_dialect/IR/TopConvOps.h"
#include "top_dialect/IR/TopFixedPointOps.h"
#include "top_dialect/IR/TopReduceOps.h"
#include "top_dialect/IR/TopShapeOps.h"
#include "top_dialect/Reference/Evaluator.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace tessera::device {

/// Evaluates dequantized or widened constants that no op reads in their narrow form; otherwise every run would compute
/// them.
static LogicalResult foldConstants(PatternRewriter &rewriter, Operation *function) {
  SmallVector<Operation *> ops;
  function->walk([&](Operation *op) {
    if (isa<top::DequantizeOp>(op) || isWidening(dyn_cast<top::CastOp>(op))) {
      ops.push_back(op);
    }
  });
  for (Operation *op : ops) {
    SmallVector<top::HostTensor> inputs, outputs;
    SmallVector<const top::HostTensor *> pointers;
    for (Value operand : op->getOperands()) {
      if (std::optional<top::TensorData> data = top::getConstantData(operand)) {
        inputs.push_back(top::HostTensor::borrow(data->type, data->bytes, data->owner));
      }
    }
    if (inputs.size() != op->getNumOperands() || op->use_empty()) {
      continue;
    }
    for (const top::HostTensor &input : inputs) {
      pointers.push_back(&input);
    }
    if (failed(top::evaluateOp(op, pointers, outputs))) {
      return failure();
    }
    rewriter.setInsertionPoint(op);
    rewriter.replaceOp(
        op, top::createConstant(rewriter, op->getLoc(), outputs[0].getType(), outputs[0].getBytes(), "dequantized"));
  }
  return success();
}

static bool isIntegerContraction(Operation *op) {
  return isa<top::ConvOp, top::MatMulOp>(op) && Lowering::element(op->getResult(0)).isSignlessInteger(32);
}

/// Lowers the remaining contractions, which compute in float, with integer weights.
static void lowerScaledWeights(PatternRewriter &rewriter, Operation *function) {
  SmallVector<Operation *> ops;
  function->walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops) {
    if (auto conv = dyn_cast<top::ConvOp>(op)) {
      lowerScaledConv(rewriter, conv);
    } else if (auto matmul = dyn_cast<top::MatMulOp>(op)) {
      lowerScaledMatMul(rewriter, matmul);
    }
  }
}

bool computesIntegers(Operation *function) {
  return function
      ->walk([](Operation *op) {
        auto dequantize = dyn_cast<top::DequantizeOp>(op);
        bool isInteger = isa<top::QuantizeOp, top::RequantizeOp>(op) || isIntegerContraction(op) ||
                         (dequantize && !top::isConstant(dequantize.getX()));
        return isInteger ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

LogicalResult lowerQuantised(Operation *function, Requantisation requantisation) {
  const bool integers = computesIntegers(function);
  bool stored = false; // values are only stored in narrow types
  function->walk([&](Operation *op) {
    auto cast = dyn_cast<top::CastOp>(op);
    stored |= isa<top::DequantizeOp>(op) || isWidening(cast) || isRounding(cast);
  });
  if (!integers && !stored) {
    return success();
  }
  if (integers) {
    setExact(function);
  }
  centreWords(function);
  if (failed(moveQuantization(function))) {
    return failure();
  }
  PatternRewriter rewriter(function->getContext());
  splitGroupMinima(rewriter, function);
  SmallVector<Operation *> products;
  function->walk([&](Operation *op) {
    if (isa<top::ConvOp, top::ConvTransposeOp, top::MatMulOp, top::ReduceOp, top::AvgPoolOp, top::AttentionOp>(op)) {
      products.push_back(op);
    }
  });
  for (Operation *op : products) {
    if (isIntegerContraction(op)) {
      lowerIntegerResult(rewriter, op);
    } else if (isa<top::ReduceOp, top::AvgPoolOp>(op)) {
      lowerIntegerMean(rewriter, op, requantisation);
    } else if (isa<top::AttentionOp>(op)) {
      lowerIntegerAttention(rewriter, op);
    } else if (isa<top::MatMulOp>(op)) {
      lowerIntegerMatMul(rewriter, op, requantisation);
    } else {
      lowerIntegerConv(rewriter, op, requantisation);
    }
  }
  absorbCasts(rewriter, function);
  lowerScaledWeights(rewriter, function);
  // Erase ops that only the lowered contractions read, e.g. dequantize ops, lest foldConstants evaluate them.
  SmallVector<Operation *> ops;
  function->walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : llvm::reverse(ops)) {
    if (isOpTriviallyDead(op)) {
      rewriter.eraseOp(op);
    }
  }
  return foldConstants(rewriter, function);
}

} // namespace tessera::device
