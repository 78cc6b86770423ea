//===- OpKinds.cpp - Classifies ops for the quantiser ---------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Precision/OpKinds.h"

#include "quant/Transforms/Weights/Weights.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/EpilogueFusion.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TensorTypes.h"
#include "top_dialect/IR/TopBlockOps.h"
#include "top_dialect/IR/TopOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace tessera::quant {
namespace {

bool isElementwise(Operation *op) {
  return isa<top::ScalarInterface>(op) && !isa<top::QuantizeOp, top::DequantizeOp>(op) && isF32(op->getResult(0)) &&
         llvm::all_of(op->getOperands(), isF32) && !llvm::all_of(op->getOperands(), top::isConstant);
}

/// Checks that padding does not leave the input's range: 0 is exact in every range, other constants may lie outside.
bool isMovingPad(top::PadOp op) { return op.getMode() != top::PadMode::constant || op.getValue().isZero(); }

bool isNearest(top::ResizeOp op) {
  return op.getMode() == top::ResizeMode::nearest && op.getCoord() != top::ResizeCoord::tf_crop_and_resize;
}

/// Maximum and minimum select one of the integers. A sum is a mean with another scale.
OpKind kindOfReduction(top::ReduceKind kind) {
  switch (kind) {
  case top::ReduceKind::max:
  case top::ReduceKind::min:
    return OpKind::move;
  case top::ReduceKind::sum:
  case top::ReduceKind::mean:
    return OpKind::blend;
  default:
    return OpKind::other;
  }
}

} // namespace

OpKind kindOf(Operation *op) {
  if (op->getNumResults() != 1 || !isF32(op->getResult(0))) {
    return OpKind::other;
  }
  if (isa<top::ConvOp, top::ConvTransposeOp, top::MatMulOp>(op)) {
    return OpKind::contraction;
  }
  if (isElementwise(op)) {
    return OpKind::elementwise;
  }
  if (auto attention = dyn_cast<top::AttentionOp>(op)) {
    bool isComputed = llvm::none_of(op->getOperands().take_front(3), top::isConstant);
    return isComputed && !attention.getLevels() && llvm::all_of(op->getOperands(), isF32) ? OpKind::attention
                                                                                          : OpKind::other;
  }
  if (llvm::any_of(op->getOperands(), [](Value v) { return isF32(v) && top::isConstant(v); })) {
    return OpKind::other; // A constant operand, such as a lookup table or a part of a concat, is not an activation.
  }
  return llvm::TypeSwitch<Operation *, OpKind>(op)
      .Case<top::ReshapeOp, top::TransposeOp, top::SliceOp, top::MaxPoolOp, top::ExpandOp, top::TileOp, top::GatherOp,
            top::GatherElementsOp, top::GatherNdOp, top::DepthToSpaceOp, top::SpaceToDepthOp>(
          [](auto) { return OpKind::move; })
      .Case([](top::PadOp pad) { return isMovingPad(pad) ? OpKind::move : OpKind::other; })
      .Case([](top::ResizeOp resize) { return isNearest(resize) ? OpKind::move : OpKind::blend; })
      .Case([](top::ReduceOp reduce) { return kindOfReduction(reduce.getKind()); })
      .Case([](top::ConcatOp) { return OpKind::concat; })
      .Case([](top::AvgPoolOp) { return OpKind::blend; })
      .Default(OpKind::other);
}

bool multipliesActivations(Operation *op) {
  return isa<top::MatMulOp>(op) && !top::isConstant(op->getOperand(0)) && !top::isConstant(op->getOperand(1)) &&
         !op->getOperand(1).getDefiningOp<top::DequantizeOp>();
}

WeightOperand weightOf(Operation *op) {
  OpOperand &weight = op->getOpOperand(1);
  if (auto matmul = dyn_cast<top::MatMulOp>(op)) {
    return {&weight, matmul.getTransB() ? 0 : 1};
  }
  return {&weight, isa<top::ConvTransposeOp>(op) ? 1 : 0};
}

Value rectified(OpBuilder &builder, Operation *op, Value sum) {
  auto clip = [&](auto contraction) {
    if (!contraction.getRelu()) {
      return sum;
    }
    const double limit = contraction.getReluLimit().convertToDouble();
    Value clipped = top::ClipOp::create(builder, op->getLoc(), sum.getType(), sum, builder.getF64FloatAttr(0),
                                        builder.getF64FloatAttr(limit > 0 ? limit : HUGE_VAL));
    return clipped;
  };
  return llvm::TypeSwitch<Operation *, Value>(op).Case<top::ConvOp, top::ConvTransposeOp, top::MatMulOp>(clip);
}

Value biasOf(Operation *op) { return op->getNumOperands() > 2 ? op->getOperand(2) : Value(); }

/// Returns a size with each symbol at its likely value; 0 if it is unknown.
static int64_t likelySize(Dim size) { return size.isUnknown() ? 0 : likelyOf(size); }

/// Returns a size with each symbol at its largest value; 0 if it is unknown.
static int64_t largestSize(Dim size) { return size.isUnknown() ? 0 : maxOf(size); }

int64_t countBlended(Operation *op) {
  int64_t count = 1;
  if (auto reduce = dyn_cast<top::ReduceOp>(op)) {
    for (int64_t axis : reduce.getAxes()) {
      count *= largestSize(Shape(reduce.getX())[axis]);
    }
  } else if (auto pool = dyn_cast<top::AvgPoolOp>(op)) {
    for (int64_t size : pool.getKernel()) {
      count *= size;
    }
  } else if (auto matmul = dyn_cast<top::MatMulOp>(op)) {
    Shape a = matmul.getA();
    count = largestSize(a[a.rank() - (matmul.getTransA() ? 2 : 1)]);
  }
  return count;
}

int64_t reductionLength(Operation *op) {
  auto weight = typeOf(weightOf(op).operand->get());
  int64_t channels = weight.getDimSize(weightOf(op).channelDim);
  int64_t perChannel = weight.getNumElements() / std::max<int64_t>(channels, 1);
  auto transposed = dyn_cast<top::ConvTransposeOp>(op);
  return transposed ? perChannel / transposed.getGroups() : perChannel;
}

int64_t countMacs(Operation *op) {
  auto type = dyn_cast_or_null<RankedTensorType>(op->getNumResults() == 1 ? op->getResult(0).getType() : Type());
  if (!isa<top::ConvOp, top::ConvTransposeOp, top::MatMulOp, top::BlockMatMulOp>(op) || !Shape(type).isDetermined()) {
    return 0;
  }
  if (auto blocks = dyn_cast<top::BlockMatMulOp>(op)) {
    return likelySize(countElements(type) * Shape(blocks.getX()).back());
  }
  if (auto transposed = dyn_cast<top::ConvTransposeOp>(op)) { // each input element is multiplied by all weights of its
                                                              // channel
    return likelySize(countElements(transposed.getX()) * countElements(Shape(transposed.getW()).dropFront()));
  }
  if (auto matmul = dyn_cast<top::MatMulOp>(op)) {
    Shape a = matmul.getA();
    return likelySize(countElements(type) * a[a.rank() - (matmul.getTransA() ? 2 : 1)]);
  }
  return likelySize(countElements(type) * countElements(Shape(op->getOperand(1)).dropFront()));
}

bool fusesInto(Value v, Operation *user, llvm::function_ref<bool(Operation *)> takesEpilogue) {
  auto canTake = [&](Operation *producer) {
    return producer->getNumResults() == 1 && producer->hasOneUse() &&
           producer->getResult(0).getType() == user->getResult(0).getType() && takesEpilogue(producer);
  };
  Operation *maker = v.getDefiningOp();
  auto isBefore = [&](Operation *a, Operation *b) { // producers inside a loop or branch count as earlier
    return a->getBlock() == b->getBlock() ? a->isBeforeInBlock(b) : b->getBlock() == maker->getBlock();
  };
  return maker && top::findEpilogueOwner(user, canTake, isBefore) == maker;
}

std::optional<std::string> reasonAgainst(Operation *op) {
  // |q - zero point| <= 255, |weight| <= 127, and kMaxBias of the 32-bit range is reserved for the bias.
  int64_t longest = (std::numeric_limits<int32_t>::max() - int64_t(kMaxBias)) / (255 * 127);
  auto tooLong = [&](int64_t length) -> std::optional<std::string> {
    return length <= longest ? std::nullopt
                             : std::optional("sums of " + std::to_string(length) +
                                             " products may overflow 32 bits; the limit is " + std::to_string(longest));
  };
  if (auto attention = dyn_cast<top::AttentionOp>(op)) {
    // |q|, |k| and |v| are at most 127.
    Shape v = attention.getV();
    int64_t depth = maxOf(Shape(attention.getQ()).back()), keys = maxOf(v[v.rank() - 2]);
    int64_t most = std::numeric_limits<int32_t>::max();
    return depth > most / (128 * 128)           ? tooLong(depth)
           : keys > most / (128 * kPowerLevels) ? tooLong(keys)
                                                : std::nullopt;
  }
  if (multipliesActivations(op)) {
    return biasOf(op) ? std::optional<std::string>("it multiplies two activations and adds a bias")
                      : tooLong(countBlended(op));
  }
  Value weight = weightOf(op).operand->get();
  if (weight.getDefiningOp<top::DequantizeOp>()) {
    return "the model already quantises its weight";
  }
  if (!top::isConstant(weight)) {
    return "its constant operand is the first one, not the second";
  }
  if (top::isConstant(op->getOperand(0))) {
    return "both of its operands are constants";
  }
  if (isa<top::MatMulOp>(op) && typeOf(weight).getRank() != 2) {
    return "its weight has rank " + std::to_string(typeOf(weight).getRank()) + "; only rank 2 is supported";
  }
  if (Value bias = biasOf(op); bias && !top::isConstant(bias)) {
    return "its bias is computed";
  }
  if (std::optional<std::string> reason = tooLong(reductionLength(op))) {
    return reason;
  }
  if (!hasFiniteWeights(op)) {
    return "its weights or bias contain NaN or infinity";
  }
  return std::nullopt;
}

} // namespace tessera::quant
