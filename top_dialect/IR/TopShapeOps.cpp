//===- TopShapeOps.cpp - Moves and tensors made from shapes: verify, infer, fold ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopShapeOps.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/IR/SymbolicLists.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::top;
using namespace tessera::top::detail;

static LogicalResult checkCount(Operation *op, StringRef name, size_t count, int64_t expected, StringRef label) {
  if (static_cast<int64_t>(count) != expected) {
    return op->emitOpError() << name << " has " << count << " entries, must have " << expected << " (" << label << ")";
  }
  return success();
}

LogicalResult BindOp::verify() {
  auto values = cast<RankedTensorType>(getValues().getType());
  std::optional<int64_t> elements = knownNumElements(values);
  int64_t index = getIndexAttr().getInt();
  if (!values.getElementType().isSignlessInteger(64) || !elements || index < 0 || index >= *elements) {
    return emitOpError() << "reads element " << index << " of " << values
                         << ", must be an element of a tensor of i64 with constant dims (bind_c1)";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Reshape
//===----------------------------------------------------------------------===//

/// Returns the requested shape: the value of `dynShape` if it is constant, else the attribute.
static SmallVector<int64_t> wantedShape(Value dynShape, ArrayRef<int64_t> attribute) {
  auto known = dynShape ? getConstantInts(dynShape) : std::nullopt;
  return known ? *known : SmallVector<int64_t>(attribute);
}

/// Returns the text of a requested shape: -1 for a size that is not known.
static std::string describe(ArrayRef<int64_t> wanted, ArrayRef<Dim> shape) {
  Dims dims;
  for (auto [number, dim] : llvm::zip(wanted, shape)) {
    dims.push_back(dim.isUnknown() ? Dim(number) : dim);
  }
  return formatShape(dims);
}

LogicalResult ReshapeOp::inferShapes(Types &types) {
  SmallVector<int64_t> wanted = wantedShape(getDynShape(), getShape());
  bool isKnown = !getDynShape() || getConstantInts(getDynShape());
  Dims x = shapeOf(getX()), shape;
  for (auto [i, number] : llvm::enumerate(wanted)) {
    // A 0 in a run-time shape stands for the dim of x, as in ONNX.
    bool copies = getDynShape() && number == 0 && i < x.size();
    shape.push_back(copies ? x[i] : number < -1 ? Dim(number) : sizeAt(*this, kDimsAttr, wanted, i));
    isKnown &= !copies || !x[i].isUnknown();
  }
  Dim known = 1;
  int64_t unknown = -1;
  for (auto [i, dim] : llvm::enumerate(shape)) {
    bool isNegative = dim.isKnown() && dim.value() < 0;
    if (isNegative || (dim.isUnknown() && unknown >= 0 && isKnown)) { // reshape_c2
      return emitOpError() << "shape " << formatShape(wanted)
                           << " must hold sizes and at most one -1 if there is no dynShape (C2)";
    }
    if (dim.isUnknown()) {
      unknown = static_cast<int64_t>(i);
    } else {
      known = mulDims(known, dim);
    }
  }
  Dim count = 1;
  for (Dim dim : x) {
    count = mulDims(count, dim);
  }
  bool several = llvm::count_if(shape, [](Dim dim) { return dim.isUnknown(); }) > 1;
  if (!count.isUnknown() && !several) { // reshape_c1
    Dim rest = unknown < 0 || known.is(0) ? Dim(1) : floorDiv(count, known);
    bool fits = unknown < 0 ? dimsAgree(count, known) : !known.is(0) && sameSize(mulDims(rest, known), count);
    if (!fits) {
      return emitOpError() << "cannot reshape the " << toText(count) << " elements of " << formatShape(x) << " to "
                           << describe(wanted, shape) << " (C1)";
    }
    if (unknown >= 0) {
      shape[unknown] = rest;
    }
  }
  return addType(*this, shape, elementOf(getX()), types);
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) { return sameType(getX(), getY()) ? getX() : Value(); }

//===----------------------------------------------------------------------===//
// Transpose, concat, slice
//===----------------------------------------------------------------------===//

LogicalResult TransposeOp::inferShapes(Types &types) {
  int64_t rank = rankOf(getX());
  SmallVector<bool> seen(rank, false);
  Dims shape;
  for (int64_t dim : getPerm()) { // transpose_c1
    if (dim < 0 || dim >= rank || seen[dim]) {
      break;
    }
    seen[dim] = true;
    shape.push_back(shapeOf(getX())[dim]);
  }
  if (static_cast<int64_t>(shape.size()) != rank || static_cast<int64_t>(getPerm().size()) != rank) {
    return emitOpError() << "perm [" << getPerm() << "] is not a permutation of rank " << rank << " (C1)";
  }
  return addType(*this, shape, elementOf(getX()), types);
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  for (auto [i, dim] : llvm::enumerate(getPerm())) {
    if (static_cast<int64_t>(i) != dim) {
      return {};
    }
  }
  return getX().getType() == getType() ? getX() : Value();
}

LogicalResult ConcatOp::inferShapes(Types &types) {
  if (getInputs().empty()) { // concat_c3
    return emitOpError() << "needs at least one operand (C3)";
  }
  int64_t axis = getAxis();
  Dims shape = shapeOf(getInputs().front());
  if (failed(checkAxis(*this, axis, shape.size(), "C1")) || // concat_c1
      failed(checkSameElement(*this, getInputs(), "C4"))) { // concat_c4
    return failure();
  }
  for (Value input : getInputs().drop_front()) {
    Dims other = shapeOf(input);
    bool fits = other.size() == shape.size();
    for (size_t d = 0; fits && d < shape.size(); ++d) {
      fits = static_cast<int64_t>(d) == axis || dimsAgree(shape[d], other[d]);
    }
    if (!fits) { // concat_c2
      return emitOpError() << "operands " << formatShape(shapeOf(getInputs().front())) << " and " << formatShape(other)
                           << " must agree in all dims but dim " << axis << " (C2)";
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      shape[d] = static_cast<int64_t>(d) == axis ? shape[d] + other[d] : mergeDims(shape[d], other[d]);
    }
  }
  return addType(*this, shape, elementOf(getInputs().front()), types);
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  return getInputs().size() == 1 && getInputs().front().getType() == getType() ? getInputs().front() : Value();
}

/// Checks that element start + i * step is within a dim of size |dim| for all i < size.
static bool isWithin(Dim dim, Dim start, Dim size, int64_t step) {
  if (size.is(0)) {
    return true;
  }
  Dim last = start + (size - 1) * step, first = step > 0 ? start : last, end = step > 0 ? last : start;
  return isAtMost(0, first) && isAtMost(end + 1, dim);
}

LogicalResult SliceOp::inferShapes(Types &types) {
  Dims x = shapeOf(getX()), shape;
  if (failed(checkCount(*this, "starts", getStarts().size(), x.size(), "C3")) || // slice_c3
      failed(checkCount(*this, "sizes", getSizes().size(), x.size(), "C3")) ||
      failed(checkCount(*this, "steps", getSteps().size(), x.size(), "C3"))) {
    return failure();
  }
  for (size_t d = 0; d < x.size(); ++d) {
    Dim start = sizeAt(*this, kStartDimsAttr, getStarts(), d), size = sizeAt(*this, kDimsAttr, getSizes(), d);
    start = start.isUnknown() ? Dim(getStarts()[d]) : start;
    int64_t step = getSteps()[d];
    shape.push_back(size);
    if (step == 0) { // slice_c2
      return emitOpError() << "step of dim " << d << " is 0 (C2)";
    }
    if (x[d].isUnknown()) {
      continue;
    }
    if (size.isUnknown() || minOf(size) < 0 || !isWithin(x[d], start, size, step)) { // slice_c1
      return emitOpError() << "start " << toText(start) << ", size " << (size.isUnknown() ? "-1" : toText(size))
                           << ", step " << step << " leaves dim " << d << " of size " << toText(x[d]) << " (C1)";
    }
  }
  return addType(*this, shape, elementOf(getX()), types);
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  bool whole = sameType(getX(), getY()) && llvm::all_of(getStarts(), [](int64_t start) { return start == 0; }) &&
               llvm::all_of(getSteps(), [](int64_t step) { return step == 1; });
  return whole ? getX() : Value();
}

//===----------------------------------------------------------------------===//
// Pad, expand, tile
//===----------------------------------------------------------------------===//

LogicalResult PadOp::inferShapes(Types &types) {
  Dims x = shapeOf(getX()), shape(x);
  if (failed(checkCount(*this, "pads", getPads().size(), 2 * x.size(), "C1"))) { // pad_c1
    return failure();
  }
  for (size_t d = 0; d < x.size(); ++d) {
    int64_t begin = getPads()[d];
    int64_t end = getPads()[d + x.size()];
    if (x[d].isUnknown()) {
      continue;
    }
    shape[d] = x[d] + begin + end;
    if (shape[d].isUnknown() || minOf(shape[d]) < 0) { // pad_c2
      return emitOpError() << "pads " << begin << " and " << end << " leave dim " << d << " of size " << toText(x[d])
                           << " without a valid size (C2)";
    }
    if (getMode() == PadMode::reflect && std::max(begin, end) > 0 && std::max(begin, end) >= minOf(x[d])) { // pad_c2
      return emitOpError() << "reflect pads " << begin << " and " << end << " must be below the size " << toText(x[d])
                           << " of dim " << d << " (C2)";
    }
    if (getMode() != PadMode::constant && minOf(x[d]) <= 0 && maxOf(shape[d]) > 0) { // pad_c2
      return emitOpError() << "dim " << d << (x[d].isKnown() ? " has" : " may have") << " no elements to pad with (C2)";
    }
  }
  return addType(*this, shape, elementOf(getX()), types);
}

LogicalResult ExpandOp::inferShapes(Types &types) {
  Dims shape = shapeOf(getX()), target;
  SmallVector<int64_t> wanted = wantedShape(getDynShape(), getShape());
  for (auto [i, number] : llvm::enumerate(wanted)) {
    Dim dim = number < -1 ? Dim(number) : sizeAt(*this, kDimsAttr, wanted, i);
    if (number < -1 || (dim.isUnknown() && !getDynShape())) { // expand_c2
      return emitOpError() << "shape has the entry " << number << "; -1 is allowed with dynShape only (C2)";
    }
    target.push_back(dim);
  }
  if (!broadcastInto(shape, target)) { // expand_c1
    return emitOpError() << "dims " << formatShape(shapeOf(getX())) << " do not broadcast with " << formatShape(target)
                         << " (C1)";
  }
  return addType(*this, shape, elementOf(getX()), types);
}

LogicalResult TileOp::inferShapes(Types &types) {
  Dims x = shapeOf(getX());
  if (failed(checkCount(*this, "repeats", getRepeats().size(), x.size(), "C1"))) { // tile_c1
    return failure();
  }
  Dims shape;
  for (auto [dim, repeat] : llvm::zip(x, getRepeats())) {
    if (repeat < 0) { // tile_c1
      return emitOpError() << "repeats has the negative entry " << repeat << " (C1)";
    }
    shape.push_back(mulDims(dim, repeat));
  }
  return addType(*this, shape, elementOf(getX()), types);
}

//===----------------------------------------------------------------------===//
// Tensors made from shapes
//===----------------------------------------------------------------------===//

LogicalResult ShapeOp::inferShapes(Types &types) {
  int64_t start = getStart();
  int64_t end = getEnd();
  if (start < 0 || end < start || end > rankOf(getX())) { // shape_c1
    return emitOpError() << "dims " << start << " to " << end << " are not within rank " << rankOf(getX()) << " (C1)";
  }
  return addType(*this, {end - start}, IntegerType::get(getContext(), 64), types);
}

LogicalResult RangeOp::inferShapes(Types &types) {
  if (failed(checkSameElement(*this, getOperands(), "C1"))) { // range_c1
    return failure();
  }
  for (Value operand : getOperands()) {
    if (knownNumElements(operand).value_or(1) != 1) { // range_c2
      return emitOpError() << "operand is " << operand.getType() << ", but must be a scalar (C2)";
    }
  }
  int64_t size = ShapedType::kDynamic;
  auto start = getConstantDoubles(getStart());
  auto limit = getConstantDoubles(getLimit());
  auto delta = getConstantDoubles(getDelta());
  if (start && limit && delta) {
    double count = std::ceil((limit->front() - start->front()) / delta->front());
    if (std::isnan(count) || count > static_cast<double>(kMaxTensorBytes)) { // range_c3
      return emitOpError() << "range " << start->front() << " to " << limit->front() << " by " << delta->front()
                           << " has no usable size (C3)";
    }
    size = count > 0 ? static_cast<int64_t>(count) : 0;
  }
  return addType(*this, {size}, elementOf(getStart()), types);
}

LogicalResult ConstantOfShapeOp::inferShapes(Types &types) {
  if (getValue().getNumElements() != 1) { // constant_of_shape_c1
    return emitOpError() << "value has " << getValue().getNumElements() << " elements, must have 1 (C1)";
  }
  if (rankOf(getShape()) != 1 || !elementOf(getShape()).isInteger(64)) { // constant_of_shape_c3
    return emitOpError() << "shape is " << getShape().getType() << ", but must be an i64 vector (C3)";
  }
  Dims shape;
  if (auto dims = getConstantInts(getShape())) {
    for (int64_t dim : *dims) {
      if (dim < 0) { // constant_of_shape_c2
        return emitOpError() << "shape has the negative dim " << dim << " (C2)";
      }
      shape.push_back(dim);
    }
  } else {
    Dim rank = shapeOf(getShape())[0];
    if (!rank.isKnown()) { // constant_of_shape_c3
      return emitOpError() << "rank of the result is unknown: the shape operand has no fixed size (C3)";
    }
    shape.assign(rank.value(), Dim(ShapedType::kDynamic));
  }
  return addType(*this, shape, getValue().getElementType(), types);
}
