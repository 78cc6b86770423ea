//===- TopConstOps.cpp - Constants and control flow: verify, infer, fold ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopConstOps.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/ShapeInference.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::top;
using namespace tessera::top::detail;

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult ConstantOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (getValue().getShapedType() != type) { // constant_c1
    return emitOpError() << "value has type " << getValue().getShapedType() << ", result " << type << " (C1)";
  }
  if (int64_t bytes = byteSize(type); bytes > kMaxInlineBytes) { // constant_c2
    return emitOpError() << "has " << bytes << " bytes, but at most " << kMaxInlineBytes
                         << " may be stored in the module: use top.weight (C2)";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

static ValueRange yielded(Region &region) {
  auto yield = region.empty() || region.front().empty() ? nullptr : dyn_cast<YieldOp>(region.front().back());
  return yield ? yield.getValues() : ValueRange();
}

// Appends the common type of a value from two paths: dims that differ become `?`.
static LogicalResult joinTypes(Operation *op, size_t index, Type a, Type b, StringRef label, Types &types) {
  auto first = dyn_cast<RankedTensorType>(a);
  auto second = dyn_cast<RankedTensorType>(b);
  if (!first || !second || first.getElementType() != second.getElementType() || first.getRank() != second.getRank()) {
    return op->emitOpError() << "value " << index << " has type " << a << " on one path and " << b << " on the other ("
                             << label << ")";
  }
  Dims shape;
  for (auto [x, y] : llvm::zip(Shape(first).dims(), Shape(second).dims())) {
    shape.push_back(sameSize(x, y) ? x : Dim(ShapedType::kDynamic));
  }
  return addType(op, shape, first.getElementType(), types);
}

static LogicalResult checkCondition(Operation *op, Value cond, StringRef label) {
  if (!elementOf(cond).isInteger(1) || (typeOf(cond).hasStaticShape() && typeOf(cond).getNumElements() != 1)) {
    return op->emitOpError() << "condition is " << cond.getType() << ", but must be one i1 (" << label << ")";
  }
  return success();
}

LogicalResult IfOp::inferShapes(Types &types) {
  if (failed(checkCondition(*this, getCond(), "C2"))) { // if_c2
    return failure();
  }
  ValueRange first = yielded(getThenRegion());
  ValueRange second = yielded(getElseRegion());
  if (first.size() != second.size()) { // if_c1
    return emitOpError() << "regions yield " << first.size() << " and " << second.size() << " values (C1)";
  }
  for (size_t i = 0; i < first.size(); ++i) {
    if (failed(joinTypes(*this, i, first[i].getType(), second[i].getType(), "C1", types))) {
      return failure();
    }
  }
  return success();
}

LogicalResult LoopOp::inferShapes(Types &types) {
  size_t carried = getInit().size();
  ValueRange values = yielded(getBody());
  if (getCond() && failed(checkCondition(*this, getCond(), "C3"))) { // loop_c3
    return failure();
  }
  if (getBody().empty() || getBody().getNumArguments() != carried + 2) { // loop_c2
    return emitOpError() << "body takes " << (getBody().empty() ? 0 : getBody().getNumArguments())
                         << " values, but must take iteration, condition and " << carried << " carried (C2)";
  }
  if (values.size() < carried + 1) { // loop_c1
    return emitOpError() << "body yields " << values.size() << " values, but must yield a condition and " << carried
                         << " carried (C1)";
  }
  for (size_t i = 0; i < carried; ++i) {
    if (failed(joinTypes(*this, i, getInit()[i].getType(), values[i + 1].getType(), "C1", types))) {
      return failure();
    }
  }
  auto trips = getTripCount() ? getConstantInts(getTripCount()) : std::nullopt;
  bool fixed = trips && trips->size() == 1 && !getCond();
  for (Value scanned : values.drop_front(carried + 1)) {
    Dims shape = shapeOf(scanned);
    shape.insert(shape.begin(), Dim(fixed ? std::max<int64_t>(trips->front(), 0) : ShapedType::kDynamic));
    if (failed(addType(*this, shape, elementOf(scanned), types))) {
      return failure();
    }
  }
  return success();
}
