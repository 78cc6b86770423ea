//===- MoveQuantization.cpp - Running copies on integers ------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Copies and selections by size do not need floats: dequantize moves down past them and quantize moves up. Both moves
// are exact, because dequantize and quantize are elementwise and monotone. Where they meet with equal parameters they
// cancel.
//===----------------------------------------------------------------------===//
#include "device_dialect/Conversion/TopToDevice/Quantized.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/SymbolicLists.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Reference/Evaluator.h"
#include <cmath>

using namespace mlir;

namespace tessera::device {
namespace {

/// Returns the operands of |op| whose elements it copies or selects; none for other ops.
SmallVector<OpOperand *> movedOperands(Operation *op) {
  SmallVector<OpOperand *> moved;
  if (isa<top::ConcatOp>(op)) {
    for (OpOperand &operand : op->getOpOperands()) {
      moved.push_back(&operand);
    }
  } else if (isa<top::ReshapeOp, top::TransposeOp, top::SliceOp, top::ExpandOp, top::TileOp, top::DepthToSpaceOp,
                 top::SpaceToDepthOp, top::PadOp, top::MaxPoolOp, top::GatherOp, top::GatherElementsOp,
                 top::GatherNdOp>(op)) {
    moved.push_back(&op->getOpOperand(0));
  } else if (auto reduce = dyn_cast<top::ReduceOp>(op)) {
    // Integers have the same order as the elements they represent.
    if (reduce.getKind() == top::ReduceKind::max || reduce.getKind() == top::ReduceKind::min) {
      moved.push_back(&op->getOpOperand(0));
    }
  } else if (auto resize = dyn_cast<top::ResizeOp>(op)) {
    // Nearest is the only mode without arithmetic; positions outside x would hold a float.
    if (resize.getMode() == top::ResizeMode::nearest && resize.getCoord() != top::ResizeCoord::tf_crop_and_resize) {
      moved.push_back(&op->getOpOperand(0));
    }
  }
  return moved;
}

/// Returns the padding value in the integers of |scaling|; nothing if it is not representable.
std::optional<int64_t> padInteger(top::PadOp pad, const Scaling &scaling) {
  double value = pad.getValue().convertToDouble();
  if (pad.getMode() != top::PadMode::constant) {
    return 0;
  }
  int64_t integer = scaling.quantize(value);
  bool exact =
      static_cast<float>(integer - scaling.zero) * static_cast<float>(scaling.scale) == static_cast<float>(value);
  return exact ? std::optional(integer) : std::nullopt;
}

/// Clones |op| on the integers |values| instead of its moved operands.
Operation *cloneOnIntegers(RewriterBase &rewriter, Operation *op, ValueRange values, const Scaling &scaling) {
  Operation *clone = rewriter.clone(*op);
  clone->removeAttr(top::TopDialect::kOutputsAttr);
  for (auto [operand, value] : llvm::zip_equal(movedOperands(clone), values)) {
    operand->set(value);
  }
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  clone->getResult(0).setType(type.clone(scaling.element));
  if (auto pad = dyn_cast<top::PadOp>(clone)) {
    pad.setValue(APFloat(static_cast<double>(*padInteger(pad, scaling))));
  }
  return clone;
}

/// Returns the parameters as scalars, which broadcast to any rank.
std::pair<Value, Value> scalarParameters(RewriterBase &rewriter, Location loc, const Scaling &scaling) {
  Value scale = top::createScalar(rewriter, loc, rewriter.getF32Type(), scaling.scale);
  return {scale, top::createScalar(rewriter, loc, scaling.element, static_cast<double>(scaling.zero))};
}

struct MoveDequantizeDown : RewritePattern {
  explicit MoveDequantizeDown(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    SmallVector<OpOperand *> moved = movedOperands(op);
    std::optional<Scaling> common;
    SmallVector<Value> values;
    for (OpOperand *operand : moved) {
      auto dequantize = operand->get().getDefiningOp<top::DequantizeOp>();
      std::optional<Scaling> scaling = dequantize ? getScaling(dequantize) : std::nullopt;
      if (!scaling || (common && *common != *scaling)) {
        return failure();
      }
      common = scaling;
      values.push_back(dequantize.getX());
    }
    auto pad = dyn_cast<top::PadOp>(op);
    if (!common || (pad && !padInteger(pad, *common))) {
      return failure();
    }
    Operation *clone = cloneOnIntegers(rewriter, op, values, *common);
    auto [scale, zero] = scalarParameters(rewriter, op->getLoc(), *common);
    auto dequantize = top::DequantizeOp::create(rewriter, op->getLoc(), op->getResult(0).getType(), clone->getResult(0),
                                                scale, zero, common->qmax);
    top::copyNames(op, dequantize);
    rewriter.replaceOp(op, dequantize);
    return success();
  }
};

/// Moves a transpose of per-channel weights before their dequantize, transposing the parameters too.
struct TransposeWeights : OpRewritePattern<top::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::TransposeOp op, PatternRewriter &rewriter) const override {
    auto dequantize = op.getX().getDefiningOp<top::DequantizeOp>();
    if (!dequantize || !top::isConstant(dequantize.getX())) {
      return failure();
    }
    SmallVector<Value> operands;
    for (Value operand : dequantize->getOperands()) {
      auto type = cast<RankedTensorType>(operand.getType());
      bool one = knownNumElements(type) == 1;
      if (!one && type.getRank() != static_cast<int64_t>(op.getPerm().size())) {
        return failure();
      }
      operands.push_back(one && operand != dequantize.getX() ? operand : transposed(rewriter, op, operand));
    }
    // A parameter of one element broadcasts the same way before and after the transpose.
    auto moved = top::DequantizeOp::create(rewriter, op.getLoc(), op.getY().getType(), operands);
    top::copyNames(op, moved);
    rewriter.replaceOp(op, moved);
    return success();
  }

private:
  static Value transposed(RewriterBase &rewriter, top::TransposeOp op, Value x) {
    auto type = cast<RankedTensorType>(x.getType());
    SmallVector<Dim> dims;
    for (int64_t dim : op.getPerm()) {
      dims.push_back(Shape(type)[dim]);
    }
    return top::TransposeOp::create(rewriter, op.getLoc(), tensorType(dims, type.getElementType()), x,
                                    op.getPermAttr());
  }
};

/// Gathers rows of a table with one scale per row or group of a row: looks up rows and scales, then dequantizes.
struct GatherRows : OpRewritePattern<top::GatherOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::GatherOp op, PatternRewriter &rewriter) const override {
    auto dequantize = op.getX().getDefiningOp<top::DequantizeOp>();
    if (!dequantize || !top::isConstant(dequantize.getX()) || op.getAxis() != 0 ||
        knownNumElements(dequantize.getZeroPoint()) != 1) {
      return failure();
    }
    ArrayRef<int64_t> table = Lowering::dims(dequantize.getX()), scales = Lowering::dims(dequantize.getScale());
    if (scales.size() != table.size() || scales[0] != table[0] || table[0] <= 1) {
      return failure();
    }
    auto rows = [&](Value from) -> Value {
      SmallVector<Dim> dims = Lowering::shape(op.getIndices()).dims();
      llvm::append_range(dims, Lowering::shape(from).dropFront().dims());
      RankedTensorType type = tensorType(dims, Lowering::element(from));
      return top::GatherOp::create(rewriter, op.getLoc(), type, from, op.getIndices(), 0);
    };
    auto result = top::DequantizeOp::create(rewriter, op.getLoc(), op.getY().getType(), rows(dequantize.getX()),
                                            rows(dequantize.getScale()), dequantize.getZeroPoint());
    top::copyNames(op, result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Evaluates copies of integer constants, so that contractions see constants.
struct FoldMovedConstants : RewritePattern {
  explicit FoldMovedConstants(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 2, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isa<top::TransposeOp, top::ReshapeOp, top::SliceOp>(op) || op->getNumOperands() != 1 ||
        top::dependsOnSizes(op)) {
      return failure();
    }
    std::optional<top::TensorData> data = top::getConstantData(op->getOperand(0));
    if (!data) {
      return failure();
    }
    top::HostTensor input = top::HostTensor::borrow(data->type, data->bytes, data->owner);
    SmallVector<top::HostTensor> outputs;
    if (failed(top::evaluateOp(op, {&input}, outputs))) {
      return failure();
    }
    Value constant = top::createConstant(rewriter, op->getLoc(), outputs[0].getType(), outputs[0].getBytes(), "moved");
    rewriter.replaceOp(op, constant);
    return success();
  }
};

/// Moves a quantize up, only past ops that keep the number of elements, so that no element is quantised twice.
struct MoveQuantizeUp : OpRewritePattern<top::QuantizeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::QuantizeOp op, PatternRewriter &rewriter) const override {
    Operation *move = op.getX().getDefiningOp();
    std::optional<Scaling> scaling = getScaling(op);
    if (!scaling || !move || !move->hasOneUse() ||
        !isa<top::ReshapeOp, top::TransposeOp, top::ConcatOp, top::DepthToSpaceOp, top::SpaceToDepthOp>(move)) {
      return failure();
    }
    auto [scale, zero] = scalarParameters(rewriter, op.getLoc(), *scaling);
    SmallVector<Value> values;
    for (OpOperand *operand : movedOperands(move)) {
      auto type = cast<RankedTensorType>(operand->get().getType());
      values.push_back(top::QuantizeOp::create(rewriter, op.getLoc(), type.clone(scaling->element), operand->get(),
                                               scale, zero, scaling->qmax));
    }
    rewriter.setInsertionPoint(op);
    Operation *clone = cloneOnIntegers(rewriter, move, values, *scaling);
    top::copyNames({move, op}, clone);
    rewriter.replaceOp(op, clone);
    rewriter.eraseOp(move);
    return success();
  }
};

/// Clones |move| on the elements |values| of type |element|. A padding must be exact in both types.
Operation *cloneOnFloats(RewriterBase &rewriter, Operation *move, ValueRange values, Type element) {
  Operation *clone = rewriter.clone(*move);
  clone->removeAttr(top::TopDialect::kOutputsAttr);
  for (auto [operand, value] : llvm::zip_equal(movedOperands(clone), values)) {
    operand->set(value);
  }
  clone->getResult(0).setType(cast<RankedTensorType>(move->getResult(0).getType()).clone(element));
  return clone;
}

bool padsExactly(Operation *move) {
  auto pad = dyn_cast<top::PadOp>(move);
  return !pad || pad.getMode() != top::PadMode::constant || pad.getValue().isZero();
}

/// Moves a widening cast down past a copy.
struct MoveWideningDown : RewritePattern {
  explicit MoveWideningDown(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    SmallVector<Value> values;
    for (OpOperand *operand : movedOperands(op)) {
      auto widen = operand->get().getDefiningOp<top::CastOp>();
      if (!isWidening(widen) || (!values.empty() && Lowering::element(values[0]) != Lowering::element(widen.getX()))) {
        return failure();
      }
      values.push_back(widen.getX());
    }
    if (values.empty() || !padsExactly(op)) {
      return failure();
    }
    Operation *clone = cloneOnFloats(rewriter, op, values, Lowering::element(values[0]));
    Type wide = op->getResult(0).getType();
    auto widen = top::CastOp::create(rewriter, op->getLoc(), wide, clone->getResult(0),
                                     TypeAttr::get(Lowering::element(op->getResult(0))));
    top::copyNames(op, widen);
    rewriter.replaceOp(op, widen);
    return success();
  }
};

/// Moves a rounding cast up past a copy.
struct MoveRoundingUp : OpRewritePattern<top::CastOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::CastOp op, PatternRewriter &rewriter) const override {
    Operation *move = op.getX().getDefiningOp();
    if (!isRounding(op) || !move || !move->hasOneUse() ||
        !isa<top::ReshapeOp, top::TransposeOp, top::ConcatOp, top::DepthToSpaceOp, top::SpaceToDepthOp>(move)) {
      return failure();
    }
    Type element = Lowering::element(op.getY());
    SmallVector<Value> values;
    for (OpOperand *operand : movedOperands(move)) {
      auto type = cast<RankedTensorType>(operand->get().getType());
      values.push_back(top::CastOp::create(rewriter, op.getLoc(), type.clone(element), operand->get(), op.getToAttr()));
    }
    rewriter.setInsertionPoint(op);
    Operation *clone = cloneOnFloats(rewriter, move, values, element);
    top::copyNames({move, op}, clone);
    rewriter.replaceOp(op, clone);
    rewriter.eraseOp(move);
    return success();
  }
};

/// Removes a rounding of a widened value, which gives back the original.
struct DropWideRoundTrip : OpRewritePattern<top::CastOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::CastOp op, PatternRewriter &rewriter) const override {
    auto widen = op.getX().getDefiningOp<top::CastOp>();
    if (!isRounding(op) || !isWidening(widen) || widen.getX().getType() != op.getY().getType()) {
      return failure();
    }
    rewriter.replaceOp(op, widen.getX());
    return success();
  }
};

/// Removes q(dq(x)) with equal parameters: n s / s equals n within 2^-22 n, which rounds to n.
struct DropRoundTrip : OpRewritePattern<top::QuantizeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::QuantizeOp op, PatternRewriter &rewriter) const override {
    auto dequantize = op.getX().getDefiningOp<top::DequantizeOp>();
    std::optional<Scaling> from = dequantize ? getScaling(dequantize) : std::nullopt, to = getScaling(op);
    if (!from || !to || *from != *to) {
      return failure();
    }
    rewriter.replaceOp(op, dequantize.getX());
    return success();
  }
};

} // namespace

LogicalResult moveQuantization(Operation *function) {
  RewritePatternSet patterns(function->getContext());
  patterns.add<MoveDequantizeDown, TransposeWeights, GatherRows, FoldMovedConstants, MoveQuantizeUp, DropRoundTrip,
               MoveWideningDown, MoveRoundingUp, DropWideRoundTrip>(function->getContext());
  GreedyRewriteConfig config;
  config.enableFolding(false).enableConstantCSE(false).setRegionSimplificationLevel(
      GreedySimplifyRegionLevel::Disabled);
  return applyPatternsGreedily(function, std::move(patterns), config);
}

} // namespace tessera::device
