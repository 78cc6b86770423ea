//===- TopReduceOps.cpp - Reductions, softmax, normalisation: verify and infer ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopReduceOps.h"

#include "top_dialect/IR/ShapeInference.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::top;
using namespace tessera::top::detail;

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static void removeAxis(Dims &shape, int64_t axis, bool keep) {
  if (keep) {
    shape[axis] = 1;
  } else {
    shape.erase(shape.begin() + axis);
  }
}

LogicalResult ReduceOp::inferShapes(Types &types) {
  ArrayRef<int64_t> axes = getAxes();
  Dims shape = shapeOf(getX());
  int64_t previous = -1;
  for (int64_t axis : axes) { // reduce_c1
    if (failed(checkAxis(*this, axis, rankOf(getX()), "C1"))) {
      return failure();
    }
    if (axis <= previous) {
      return emitOpError() << "axes are not sorted and unique: " << axis << " after " << previous << " (C1)";
    }
    previous = axis;
  }
  for (int64_t axis : llvm::reverse(axes)) {
    removeAxis(shape, axis, getKeepDims());
  }
  return addType(*this, shape, elementOf(getX()), types);
}

LogicalResult ArgReduceOp::inferShapes(Types &types) {
  int64_t axis = getAxis();
  Dims shape = shapeOf(getX());
  if (failed(checkAxis(*this, axis, rankOf(getX()), "C1"))) { // arg_reduce_c1
    return failure();
  }
  if (!shape[axis].isUnknown() && minOf(shape[axis]) < 1) { // arg_reduce_c2
    return emitOpError() << "axis " << axis << (shape[axis].isKnown() ? " has" : " may have") << " no elements (C2)";
  }
  removeAxis(shape, axis, getKeepDims());
  return addType(*this, shape, IntegerType::get(getContext(), 64), types);
}

LogicalResult CumSumOp::inferShapes(Types &types) {
  if (failed(checkAxis(*this, getAxis(), rankOf(getX()), "C1"))) { // cumsum_c1
    return failure();
  }
  return addType(*this, shapeOf(getX()), elementOf(getX()), types);
}

LogicalResult TopKOp::inferShapes(Types &types) {
  int64_t axis = getAxis();
  // k is -1 for all elements of an axis of an open size.
  int64_t k = getK();
  if (failed(checkAxis(*this, axis, rankOf(getX()), "C1"))) { // topk_c1
    return failure();
  }
  Dims shape = shapeOf(getX());
  if (k < -1 || (!shape[axis].isUnknown() && k > minOf(shape[axis]))) { // topk_c2
    return emitOpError() << "k = " << k << ", allowed are 0 to " << formatShape(shape[axis]) << " (C2)";
  }
  shape[axis] = k < 0 ? shape[axis] : Dim(k);
  return success(succeeded(addType(*this, shape, elementOf(getX()), types)) &&
                 succeeded(addType(*this, shape, IntegerType::get(getContext(), 64), types)));
}

LogicalResult NonMaxSuppressionOp::inferShapes(Types &types) {
  Dims boxes = shapeOf(getBoxes()), scores = shapeOf(getScores());
  bool fits = boxes.size() == 3 && scores.size() == 3 && dimsAgree(boxes[2], 4) && dimsAgree(boxes[0], scores[0]) &&
              dimsAgree(boxes[1], scores[2]);
  if (!fits) { // non_max_suppression_c1
    return emitOpError() << "boxes are " << formatShape(boxes) << " and scores " << formatShape(scores)
                         << "; allowed are BxNx4 and BxCxN (C1)";
  }
  for (Value value : {getBoxes(), getScores(), getIouThreshold(), getScoreThreshold()}) {
    if (!elementOf(value).isF32()) { // non_max_suppression_c2
      return emitOpError() << "an operand has element type " << elementOf(value) << ", but only 'f32' is allowed (C2)";
    }
  }
  if (!elementOf(getMaxBoxes()).isSignlessInteger(64)) { // non_max_suppression_c2
    return emitOpError() << "maxBoxes has element type " << elementOf(getMaxBoxes())
                         << ", but only 'i64' is allowed (C2)";
  }
  for (Value value : {getMaxBoxes(), getIouThreshold(), getScoreThreshold()}) {
    if (!llvm::all_of(shapeOf(value), [](Dim dim) { return dim.is(1); })) { // non_max_suppression_c3
      return emitOpError() << "a limit is " << formatShape(shapeOf(value)) << ", but must have one element (C3)";
    }
  }
  Dim count = mergeDims(boxes[1], scores[2]);
  int64_t k = getK();
  if (k < 1 || (!count.isUnknown() && k > maxOf(count))) { // non_max_suppression_c4
    return emitOpError() << "k = " << k << ", allowed are 1 to " << formatShape(count) << " (C4)";
  }
  return addType(*this, {mergeDims(boxes[0], scores[0]), scores[1], k}, IntegerType::get(getContext(), 64), types);
}

LogicalResult SoftmaxOp::inferShapes(Types &types) {
  if (failed(checkAxis(*this, getAxis(), rankOf(getX()), "C1"))) { // softmax_c1
    return failure();
  }
  return addType(*this, shapeOf(getX()), elementOf(getX()), types);
}

//===----------------------------------------------------------------------===//
// Normalisation
//===----------------------------------------------------------------------===//

static LogicalResult checkPerChannel(Operation *op, Value value, StringRef name, Dim channels, StringRef label) {
  if (!shapesAgree(shapeOf(value), {channels})) {
    return op->emitOpError() << name << " is " << formatShape(shapeOf(value)) << ", but must be "
                             << formatShape({channels}) << " as the channels (" << label << ")";
  }
  return success();
}

LogicalResult BatchNormOp::inferShapes(Types &types) {
  if (rankOf(getX()) < 2) { // batch_norm_c2
    return emitOpError() << "input has rank " << rankOf(getX()) << ", must be at least 2 (C2)";
  }
  Dim channels = shapeOf(getX())[1];
  if (failed(checkPerChannel(*this, getScale(), "scale", channels, "C1")) || // batch_norm_c1
      failed(checkPerChannel(*this, getBias(), "bias", channels, "C1")) ||
      failed(checkPerChannel(*this, getMean(), "mean", channels, "C1")) ||
      failed(checkPerChannel(*this, getVariance(), "variance", channels, "C1"))) {
    return failure();
  }
  return addType(*this, shapeOf(getX()), elementOf(getX()), types);
}

LogicalResult LayerNormOp::inferShapes(Types &types) {
  if (failed(checkAxis(*this, getAxis(), rankOf(getX()), "C2"))) { // layer_norm_c2
    return failure();
  }
  Dims normalised(llvm::drop_begin(shapeOf(getX()), getAxis()));
  for (Value parameter : {getScale(), getBias()}) {
    if (parameter && !shapesAgree(shapeOf(parameter), normalised)) { // layer_norm_c1
      return emitOpError() << "scale and bias must be " << formatShape(normalised) << ", one is "
                           << formatShape(shapeOf(parameter)) << " (C1)";
    }
  }
  return addType(*this, shapeOf(getX()), elementOf(getX()), types);
}

LogicalResult GroupNormOp::inferShapes(Types &types) {
  if (rankOf(getX()) < 2) { // group_norm_c3
    return emitOpError() << "input has rank " << rankOf(getX()) << ", must be at least 2 (C3)";
  }
  Dim channels = shapeOf(getX())[1];
  int64_t groups = getGroups();
  if (groups < 1 || !mayDivide(groups, channels)) { // group_norm_c1
    return emitOpError() << "groups = " << groups << " does not divide the " << formatShape(channels)
                         << " channels (C1)";
  }
  if (failed(checkPerChannel(*this, getScale(), "scale", channels, "C2")) || // group_norm_c2
      failed(checkPerChannel(*this, getBias(), "bias", channels, "C2"))) {
    return failure();
  }
  return addType(*this, shapeOf(getX()), elementOf(getX()), types);
}

LogicalResult LrnOp::inferShapes(Types &types) {
  if (static_cast<int64_t>(getSize()) < 1) { // lrn_c1
    return emitOpError() << "size " << static_cast<int64_t>(getSize()) << " must be positive (C1)";
  }
  if (rankOf(getX()) < 3) { // lrn_c2
    return emitOpError() << "input has rank " << rankOf(getX()) << ", must be at least 3 (C2)";
  }
  return addType(*this, shapeOf(getX()), elementOf(getX()), types);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

LogicalResult AttentionOp::inferShapes(Types &types) {
  Dims q = shapeOf(getQ()), k = shapeOf(getK()), v = shapeOf(getV());
  if (q.size() < 2 || q.size() != k.size() || q.size() != v.size()) { // attention_c2
    return emitOpError() << "q, k, v have rank " << q.size() << ", " << k.size() << ", " << v.size()
                         << "; they must be equal and at least 2 (C2)";
  }
  size_t rank = q.size();
  if (!dimsAgree(q[rank - 1], k[rank - 1]) || !dimsAgree(k[rank - 2], v[rank - 2])) { // attention_c1
    return emitOpError() << "q " << formatShape(q) << ", k " << formatShape(k) << ", v " << formatShape(v)
                         << ": the last dims of q and k and the second last of k and v must agree (C1)";
  }
  Dims batch(ArrayRef(q).drop_back(2));
  if (!broadcastInto(batch, ArrayRef(k).drop_back(2)) ||
      !broadcastInto(batch, ArrayRef(v).drop_back(2))) { // attention_c3
    return emitOpError() << "leading dims of q " << formatShape(q) << ", k " << formatShape(k) << ", v "
                         << formatShape(v) << " do not broadcast (C3)";
  }
  if (getMask()) { // attention_c4
    Dims scores(batch);
    scores.append({q[rank - 2], k[rank - 2]});
    Dims joined(scores);
    if (!broadcastInto(joined, shapeOf(getMask())) || !shapesAgree(joined, scores)) {
      return emitOpError() << "mask " << formatShape(shapeOf(getMask())) << " does not broadcast to "
                           << formatShape(scores) << " (C4)";
    }
  }
  if (int64_t levels = getLevels().value_or(1); levels < 1 || levels > 255) { // attention_c5
    return emitOpError() << "has levels = " << levels << ", allowed are 1 to 255 (C5)";
  }
  Dims shape(batch);
  shape.append({q[rank - 2], v[rank - 1]});
  return addType(*this, shape, elementOf(getQ()), types);
}

LogicalResult RopeOp::inferShapes(Types &types) {
  Dims x = shapeOf(getX());
  if (x.size() < 2 || !mayDivide(2, x.back())) { // rope_c1
    return emitOpError() << "input is " << formatShape(x) << ", but needs rank 2 or more and an even last dim (C1)";
  }
  Dims half(x);
  half.back() = floorDiv(x.back(), 2);
  for (Value table : {getCos(), getSin()}) { // rope_c2
    Dims joined(half);
    if (!broadcastInto(joined, shapeOf(table)) || !shapesAgree(joined, half)) {
      return emitOpError() << "cos and sin must broadcast to " << formatShape(half) << ", one is "
                           << formatShape(shapeOf(table)) << " (C2)";
    }
  }
  return addType(*this, x, elementOf(getX()), types);
}
