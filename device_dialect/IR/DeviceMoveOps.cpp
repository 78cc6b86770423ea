//===- DeviceMoveOps.cpp - Verifiers of the move family -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceMoveOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/IR/Pieces.h"
#include "device_dialect/IR/Verify.h"
#include "top_dialect/IR/Constants.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using tessera::Dim;
using tessera::Shape;
using tessera::toText;
using tessera::typeOf;
using namespace tessera::device;
using verify::agree;

//===----------------------------------------------------------------------===//
// copy, reshape
//===----------------------------------------------------------------------===//

static LogicalResult verifyPieceRanks(CopyOp op, PieceAttr piece, size_t index) {
  size_t rank = typeOf(op.getY()).getRank();
  if (piece.getSource() < 0 || piece.getSource() >= static_cast<int64_t>(op.getSources().size())) {
    return op.emitOpError() << "piece " << index << " reads source " << piece.getSource() << " of "
                            << op.getSources().size() << " (copy_c2)";
  }
  int64_t sourceRank = typeOf(op.getSources()[piece.getSource()]).getRank();
  bool fits = piece.getSizes().size() == rank && piece.getDstOffsets().size() == rank &&
              piece.getDstSteps().size() == rank && piece.getSrcDims().size() == rank &&
              piece.getSrcSteps().size() == rank && piece.getSrcOffsets().size() == static_cast<size_t>(sourceRank);
  if (!fits) { // copy_c2
    return op.emitOpError() << "the arrays of piece " << index << " do not have the ranks of the result, " << rank
                            << ", and of source " << piece.getSource() << ", " << sourceRank << " (copy_c2)";
  }
  SmallVector<Dim> sizes = SymbolicPiece(piece).sizes;
  for (size_t d = 0; d < rank; ++d) {
    Dim size = sizes[d];
    if (piece.getSrcDims()[d] < -1 || piece.getSrcDims()[d] >= sourceRank || maxOf(size) < 1 ||
        piece.getDstSteps()[d] < 1) {
      return op.emitOpError() << "dim " << d << " of piece " << index << " has source dim " << piece.getSrcDims()[d]
                              << ", size " << toText(size) << ", result step " << piece.getDstSteps()[d]
                              << " (copy_c2)";
    }
  }
  return success();
}

/// Returns true if a region of first to last index lies inside a dim of |size|, as far as known: of symbolic numbers,
/// only what is wrong for all values of the symbols is rejected.
static bool liesInside(Dim first, Dim last, Dim size) {
  return maxOf(first) >= 0 && (size.isUnknown() || maxOf(size - 1 - last) >= 0);
}

static LogicalResult verifyPieceBounds(CopyOp op, PieceAttr attr, size_t index) {
  Shape y = op.getY(), x = op.getSources()[attr.getSource()];
  SymbolicPiece piece(attr);
  SmallVector<Dim> first(piece.srcOffsets), last(piece.srcOffsets);
  for (size_t d = 0; d < y.rank(); ++d) {
    if (int64_t s = piece.srcDims[d]; s >= 0) {
      (piece.srcSteps[d] < 0 ? first : last)[s] += (piece.sizes[d] - 1) * piece.srcSteps[d];
    }
  }
  for (size_t s = 0; s < x.rank(); ++s) {
    if (!liesInside(first[s], last[s], x[s])) { // copy_c3
      return op.emitOpError() << "piece " << index << " reads " << toText(first[s]) << ".." << toText(last[s])
                              << " of source dim " << s << ", which has " << toText(x[s]) << " (copy_c3)";
    }
  }
  for (size_t d = 0; d < y.rank(); ++d) {
    Dim end = piece.dstOffsets[d] + (piece.sizes[d] - 1) * piece.dstSteps[d];
    if (!liesInside(piece.dstOffsets[d], end, y[d])) { // copy_c3
      return op.emitOpError() << "piece " << index << " writes " << toText(piece.dstOffsets[d]) << ".." << toText(end)
                              << " of result dim " << d << ", which has " << toText(y[d]) << " (copy_c3)";
    }
  }
  return success();
}

/// Verifies (C4). Overlaps of symbolic pieces are not checked.
static LogicalResult verifyCover(CopyOp op, ArrayRef<PieceAttr> pieces) {
  bool isKnown = llvm::all_of(pieces, [](PieceAttr piece) { return piece.isKnown(); });
  if (std::optional<std::pair<size_t, size_t>> clash = isKnown ? findOverlap(pieces) : std::nullopt) { // copy_c4
    return op.emitOpError() << "pieces " << clash->first << " and " << clash->second
                            << " overlap in the result (copy_c4)";
  }
  Dim all = countElements(Shape(op.getY())), covered = 0;
  for (PieceAttr piece : pieces) {
    Dim elements = 1;
    for (Dim size : SymbolicPiece(piece).sizes) {
      elements *= size;
    }
    covered += elements;
  }
  tessera::SizeRange rest = rangeOf(all - covered);
  if (!op.getFill() && !all.isUnknown() && (rest.min > 0 || rest.max < 0)) { // copy_c4
    return op.emitOpError() << "the pieces cover " << toText(covered) << " of " << toText(all)
                            << " elements and there is no fill (copy_c4)";
  }
  return success();
}

LogicalResult CopyOp::verify() {
  RankedTensorType y = typeOf(getY());
  for (Value source : getSources()) {
    if (typeOf(source).getElementType() != y.getElementType()) { // copy_c1
      return emitOpError() << "source elements are " << typeOf(source).getElementType() << ", result elements "
                           << y.getElementType() << " (copy_c1)";
    }
  }
  SmallVector<PieceAttr> pieces(getPieces().getAsRange<PieceAttr>());
  for (auto [i, piece] : llvm::enumerate(pieces)) {
    if (failed(verifyPieceRanks(*this, piece, i)) || failed(verifyPieceBounds(*this, piece, i))) {
      return failure();
    }
  }
  return verifyCover(*this, pieces);
}

LogicalResult ReshapeOp::verify() {
  RankedTensorType x = typeOf(getX()), y = typeOf(getY());
  if (x.getElementType() != y.getElementType()) { // reshape_c2
    return emitOpError() << "operand elements are " << x.getElementType() << ", result elements " << y.getElementType()
                         << " (reshape_c2)";
  }
  if (Shape(x).isDetermined() && Shape(y).isDetermined()) {
    Dim from = countElements(Shape(x)), to = countElements(Shape(y));
    if (!verify::agree(from, to)) { // reshape_c1
      return emitOpError() << "the operand has " << toText(from) << " elements, the result " << toText(to)
                           << " (reshape_c1)";
    }
    if (!sameBytes(x, y)) { // reshape_c3
      return emitOpError() << "the layouts of " << x << " and " << y << " order the elements differently (reshape_c3)";
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// gather, scatter
//===----------------------------------------------------------------------===//

LogicalResult GatherOp::verify() {
  Shape x = getX();
  if (failed(verify::axis(*this, getAxis(), x.rank(), "gather_c1")) ||
      failed(verify::indexType(*this, getIndices(), "gather_c2"))) {
    return failure();
  }
  SmallVector<Dim> expected = x.dropBack(x.rank() - getAxis()).dims();
  llvm::append_range(expected, Shape(getIndices()).dims());
  llvm::append_range(expected, x.dropFront(getAxis() + 1).dims());
  return verify::dims(*this, getY(), expected, "result", "gather_c3");
}

LogicalResult GatherElementsOp::verify() {
  RankedTensorType x = typeOf(getX()), indices = typeOf(getIndices());
  if (failed(verify::axis(*this, getAxis(), x.getRank(), "gather_elements_c1")) ||
      failed(verify::indexType(*this, getIndices(), "gather_elements_c2"))) {
    return failure();
  }
  if (x.getRank() != indices.getRank()) { // gather_elements_c2
    return emitOpError() << "x has rank " << x.getRank() << ", indices " << indices.getRank()
                         << " (gather_elements_c2)";
  }
  return verify::dims(*this, getY(), Shape(indices).dims(), "result", "gather_elements_c3");
}

LogicalResult GatherNdOp::verify() {
  Shape x = getX(), indices = getIndices();
  int64_t batch = getBatchDims();
  if (batch < 0 || batch >= static_cast<int64_t>(x.rank()) ||
      batch >= static_cast<int64_t>(indices.rank())) { // gather_nd_c1
    return emitOpError() << "batchDims " << batch << " is not below the ranks " << x.rank() << " and " << indices.rank()
                         << " (gather_nd_c1)";
  }
  if (failed(verify::indexType(*this, getIndices(), "gather_nd_c2"))) {
    return failure();
  }
  Dim tuple = indices.back();
  if (!tuple.isKnown() || tuple.value() < 1 || tuple.value() > static_cast<int64_t>(x.rank()) - batch) {
    return emitOpError() << "index tuples have " << toText(tuple) << " entries, allowed 1.." << x.rank() - batch
                         << " (gather_nd_c2)"; // gather_nd_c2
  }
  SmallVector<Dim> expected = indices.dropBack().dims();
  llvm::append_range(expected, x.dropFront(batch + tuple.value()).dims());
  return verify::dims(*this, getY(), expected, "result", "gather_nd_c3");
}

LogicalResult ScatterOp::verify() {
  Shape x = getX(), indices = getIndices();
  if (!getNd() && failed(verify::axis(*this, getAxis(), x.rank(), "scatter_c1"))) {
    return failure();
  }
  if (failed(verify::indexType(*this, getIndices(), "scatter_c2"))) {
    return failure();
  }
  SmallVector<Dim> updates = indices.dims();
  if (getNd()) {
    Dim tuple = indices.rank() == 0 ? Dim(0) : indices.back();
    if (!tuple.isKnown() || tuple.value() < 1 || tuple.value() > static_cast<int64_t>(x.rank())) {
      return emitOpError() << "index tuples have " << toText(tuple) << " entries, allowed 1.." << x.rank()
                           << " (scatter_c2)"; // scatter_c2
    }
    updates.pop_back();
    llvm::append_range(updates, x.dropFront(tuple.value()).dims());
  } else if (indices.rank() != x.rank()) { // scatter_c2
    return emitOpError() << "x has rank " << x.rank() << ", indices " << indices.rank() << " (scatter_c2)";
  }
  if (failed(verify::dims(*this, getUpdates(), updates, "updates", "scatter_c2")) ||
      failed(verify::sameType(*this, getX(), getY(), "scatter_c3"))) {
    return failure();
  }
  if (!llvm::is_contained({"none", "add", "mul", "min", "max"}, getReduction())) { // scatter_c4
    return emitOpError() << "reduction '" << getReduction() << "' is not one of none, add, mul, min, max (scatter_c4)";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// resize
//===----------------------------------------------------------------------===//

static LogicalResult verifyResizeIndices(ResizeOp op, Value table, Dim dim) {
  std::optional<tessera::top::TensorData> data = tessera::top::getConstantData(table);
  if (!data || dim.isUnknown()) {
    return success();
  }
  for (int32_t index : data->data<int32_t>()) {
    if (index < 0 || index >= minOf(dim)) { // resize_c2
      return op.emitOpError() << "a table holds index " << index << ", allowed 0.." << minOf(dim) - 1 << " (resize_c2)";
    }
  }
  return success();
}

LogicalResult ResizeOp::verify() {
  RankedTensorType x = typeOf(getX()), y = typeOf(getY());
  if (failed(verify::axes(*this, getAxes(), x.getRank(), "resize_c3"))) {
    return failure();
  }
  if (getTables().size() != 2 * getAxes().size() || x.getRank() != y.getRank()) { // resize_c1
    return emitOpError() << getTables().size() << " tables for " << getAxes().size()
                         << " axes, expected two each, and equal ranks (resize_c1)";
  }
  SmallVector<Dim> expected = Shape(x).dims();
  for (auto [i, axis] : llvm::enumerate(getAxes())) {
    Value index = getTables()[2 * i], weight = getTables()[2 * i + 1];
    expected[axis] = Shape(y)[axis];
    for (Value table : {index, weight}) {
      Shape dims = table;
      if (dims.rank() != 2 || !agree(dims[0], expected[axis]) || dims[1].is(0) ||
          !agree(dims[1], Shape(index)[1])) { // resize_c1
        return emitOpError() << "a table of axis " << axis << " has dims " << verify::printDims(dims.dims())
                             << ", expected " << toText(expected[axis]) << " x taps (resize_c1)";
      }
    }
    Type indexType = typeOf(index).getElementType(), weightType = typeOf(weight).getElementType();
    if (!indexType.isSignlessInteger(32) || !weightType.isF32()) { // resize_c4
      return emitOpError() << "tables hold " << indexType << " and " << weightType
                           << ", allowed i32 and f32 (resize_c4)";
    }
    if (!isa<FloatType>(x.getElementType()) && !Shape(index)[1].is(1)) { // resize_c4
      return emitOpError() << "operand elements are " << x.getElementType()
                           << ", allowed floats unless every index has one tap (resize_c4)";
    }
    if (failed(verifyResizeIndices(*this, index, Shape(x)[axis]))) {
      return failure();
    }
  }
  bool floats = isa<FloatType>(x.getElementType()) && isa<FloatType>(y.getElementType());
  if (x.getElementType() != y.getElementType() && !floats) { // resize_c3
    return emitOpError() << "operand and result types differ: " << x << " and " << y << " (resize_c3)";
  }
  return verify::dims(*this, getY(), expected, "result", "resize_c3");
}

//===----------------------------------------------------------------------===//
// arg_reduce, topk, cumsum
//===----------------------------------------------------------------------===//

static LogicalResult verifyIndexResult(Operation *op, Value result, ArrayRef<Dim> dims, StringRef label) {
  if (!typeOf(result).getElementType().isSignlessInteger(64)) {
    return op->emitOpError() << "index elements are " << typeOf(result).getElementType() << ", expected i64 (" << label
                             << ")";
  }
  return verify::dims(op, result, dims, "index result", label);
}

LogicalResult ArgReduceOp::verify() {
  RankedTensorType x = typeOf(getX());
  if (failed(verify::axis(*this, getAxis(), x.getRank(), "arg_reduce_c1"))) {
    return failure();
  }
  SmallVector<Dim> expected = Shape(x).dims();
  expected[getAxis()] = 1;
  return verifyIndexResult(*this, getY(), expected, "arg_reduce_c2");
}

LogicalResult TopKOp::verify() {
  RankedTensorType x = typeOf(getX());
  if (failed(verify::axis(*this, getAxis(), x.getRank(), "topk_c1"))) {
    return failure();
  }
  int64_t k = getK();
  Dim dim = Shape(x)[getAxis()];
  bool isAll = k == -1;
  if (!isAll && (k < 1 || (!dim.isUnknown() && k > minOf(dim)))) { // topk_c1
    return emitOpError() << "k = " << k << ", allowed 1.." << toText(dim) << " (topk_c1)";
  }
  SmallVector<Dim> expected = Shape(x).dims();
  expected[getAxis()] = isAll ? dim : Dim(k);
  if (typeOf(getValues()).getElementType() != x.getElementType()) { // topk_c2
    return emitOpError() << "values are " << typeOf(getValues()).getElementType() << ", expected " << x.getElementType()
                         << " (topk_c2)";
  }
  return success(succeeded(verify::dims(*this, getValues(), expected, "values", "topk_c2")) &&
                 succeeded(verifyIndexResult(*this, getIndices(), expected, "topk_c2")));
}

LogicalResult NonMaxSuppressionOp::verify() {
  Shape boxes = getBoxes(), scores = getScores();
  if (boxes.rank() != 3 || scores.rank() != 3 || !agree(boxes[2], 4) || !agree(boxes[0], scores[0]) ||
      !agree(boxes[1], scores[2])) { // non_max_suppression_c1
    return emitOpError() << "boxes are " << verify::printDims(boxes.dims()) << " and scores "
                         << verify::printDims(scores.dims()) << ", allowed BxNx4 and BxCxN (non_max_suppression_c1)";
  }
  int64_t k = getK();
  Dim count = scores[2];
  if (k < 1 || (!count.isUnknown() && k > maxOf(count))) { // non_max_suppression_c1
    return emitOpError() << "k = " << k << ", allowed 1.." << toText(count) << " (non_max_suppression_c1)";
  }
  bool floats = llvm::all_of(ValueRange{getBoxes(), getScores(), getIouThreshold(), getScoreThreshold()},
                             [](Value value) { return typeOf(value).getElementType().isF32(); });
  bool single = llvm::all_of(ValueRange{getMaxBoxes(), getIouThreshold(), getScoreThreshold()}, [](Value value) {
    return llvm::all_of(Shape(value).dims(), [](Dim dim) { return dim.is(1); });
  });
  if (!floats || !single || !typeOf(getMaxBoxes()).getElementType().isSignlessInteger(64)) {
    // non_max_suppression_c2
    return emitOpError("operands are not f32 with an i64 maxBoxes and limits of one element (non_max_suppression_c2)");
  }
  return verifyIndexResult(*this, getY(), {boxes[0], scores[1], k}, "non_max_suppression_c3");
}

LogicalResult InsertOp::verify() {
  Shape x = getX(), updates = getUpdates();
  if (failed(verify::axis(*this, getAxis(), x.rank(), "insert_c1"))) {
    return failure();
  }
  SmallVector<Dim> expected = x.dims();
  if (updates.rank() == expected.size()) {
    expected[getAxis()] = updates[getAxis()];
  }
  if (failed(verify::dims(*this, getUpdates(), expected, "updates", "insert_c2")) ||
      failed(verify::sameType(*this, getX(), getY(), "insert_c3"))) {
    return failure();
  }
  if (typeOf(getUpdates()).getElementType() != typeOf(getX()).getElementType()) { // insert_c3
    return emitOpError() << "writes " << typeOf(getUpdates()).getElementType() << " into "
                         << typeOf(getX()).getElementType() << " (insert_c3)";
  }
  return success();
}

LogicalResult CumSumOp::verify() {
  return success(succeeded(verify::axis(*this, getAxis(), typeOf(getX()).getRank(), "cumsum_c1")) &&
                 succeeded(verify::sameType(*this, getX(), getY(), "cumsum_c2")));
}
