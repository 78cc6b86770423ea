//===- DeviceMoveOps.cpp - Verifiers of the move family -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceMoveOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/IR/Pieces.h"
#include "device_dialect/IR/Verify.h"
#include "top_dialect/IR/Constants.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
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
  for (size_t d = 0; d < rank; ++d) {
    if (piece.getSrcDims()[d] < -1 || piece.getSrcDims()[d] >= sourceRank || piece.getSizes()[d] < 1 ||
        piece.getDstSteps()[d] < 1) {
      return op.emitOpError() << "dim " << d << " of piece " << index << " has source dim " << piece.getSrcDims()[d]
                              << ", size " << piece.getSizes()[d] << ", result step " << piece.getDstSteps()[d]
                              << " (copy_c2)";
    }
  }
  return success();
}

static LogicalResult verifyPieceBounds(CopyOp op, PieceAttr piece, size_t index) {
  ArrayRef<int64_t> y = typeOf(op.getY()).getShape();
  ArrayRef<int64_t> x = typeOf(op.getSources()[piece.getSource()]).getShape();
  SmallVector<Range> ranges = sourceRanges(piece, x.size());
  for (size_t s = 0; s < x.size(); ++s) {
    if (ranges[s].first < 0 || (!ShapedType::isDynamic(x[s]) && ranges[s].last >= x[s])) { // copy_c3
      return op.emitOpError() << "piece " << index << " reads " << ranges[s].first << ".." << ranges[s].last
                              << " of source dim " << s << ", which has " << x[s] << " (copy_c3)";
    }
  }
  for (size_t d = 0; d < y.size(); ++d) {
    int64_t first = piece.getDstOffsets()[d];
    int64_t last = first + (piece.getSizes()[d] - 1) * piece.getDstSteps()[d];
    if (first < 0 || (!ShapedType::isDynamic(y[d]) && last >= y[d])) { // copy_c3
      return op.emitOpError() << "piece " << index << " writes " << first << ".." << last << " of result dim " << d
                              << ", which has " << y[d] << " (copy_c3)";
    }
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
  if (std::optional<std::pair<size_t, size_t>> clash = findOverlap(pieces)) { // copy_c4
    return emitOpError() << "pieces " << clash->first << " and " << clash->second << " overlap in the result (copy_c4)";
  }
  if (!getFill() && y.hasStaticShape()) {
    int64_t covered = 0;
    for (PieceAttr piece : pieces) {
      covered += pieceElements(piece);
    }
    if (covered != y.getNumElements()) { // copy_c4
      return emitOpError() << "the pieces cover " << covered << " of " << y.getNumElements()
                           << " elements and there is no fill (copy_c4)";
    }
  }
  return success();
}

LogicalResult ReshapeOp::verify() {
  RankedTensorType x = typeOf(getX()), y = typeOf(getY());
  if (x.getElementType() != y.getElementType()) { // reshape_c2
    return emitOpError() << "operand elements are " << x.getElementType() << ", result elements " << y.getElementType()
                         << " (reshape_c2)";
  }
  if (x.hasStaticShape() && y.hasStaticShape()) {
    if (x.getNumElements() != y.getNumElements()) { // reshape_c1
      return emitOpError() << "the operand has " << x.getNumElements() << " elements, the result " << y.getNumElements()
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
  ArrayRef<int64_t> x = typeOf(getX()).getShape();
  if (failed(verify::axis(*this, getAxis(), x.size(), "gather_c1")) ||
      failed(verify::indexType(*this, getIndices(), "gather_c2"))) {
    return failure();
  }
  SmallVector<int64_t> expected(x.take_front(getAxis()));
  llvm::append_range(expected, typeOf(getIndices()).getShape());
  llvm::append_range(expected, x.drop_front(getAxis() + 1));
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
  return verify::dims(*this, getY(), indices.getShape(), "result", "gather_elements_c3");
}

LogicalResult GatherNdOp::verify() {
  ArrayRef<int64_t> x = typeOf(getX()).getShape();
  ArrayRef<int64_t> indices = typeOf(getIndices()).getShape();
  int64_t batch = getBatchDims();
  if (batch < 0 || batch >= static_cast<int64_t>(x.size()) ||
      batch >= static_cast<int64_t>(indices.size())) { // gather_nd_c1
    return emitOpError() << "batchDims " << batch << " is not below the ranks " << x.size() << " and " << indices.size()
                         << " (gather_nd_c1)";
  }
  if (failed(verify::indexType(*this, getIndices(), "gather_nd_c2"))) {
    return failure();
  }
  int64_t tuple = indices.back();
  if (ShapedType::isDynamic(tuple) || tuple < 1 || tuple > static_cast<int64_t>(x.size()) - batch) {
    return emitOpError() << "index tuples have " << tuple << " entries, allowed 1.." << x.size() - batch
                         << " (gather_nd_c2)"; // gather_nd_c2
  }
  SmallVector<int64_t> expected(indices.drop_back());
  llvm::append_range(expected, x.drop_front(batch + tuple));
  return verify::dims(*this, getY(), expected, "result", "gather_nd_c3");
}

LogicalResult ScatterOp::verify() {
  ArrayRef<int64_t> x = typeOf(getX()).getShape();
  ArrayRef<int64_t> indices = typeOf(getIndices()).getShape();
  if (!getNd() && failed(verify::axis(*this, getAxis(), x.size(), "scatter_c1"))) {
    return failure();
  }
  if (failed(verify::indexType(*this, getIndices(), "scatter_c2"))) {
    return failure();
  }
  SmallVector<int64_t> updates(indices);
  if (getNd()) {
    int64_t tuple = indices.empty() ? 0 : indices.back();
    if (ShapedType::isDynamic(tuple) || tuple < 1 || tuple > static_cast<int64_t>(x.size())) {
      return emitOpError() << "index tuples have " << tuple << " entries, allowed 1.." << x.size()
                           << " (scatter_c2)"; // scatter_c2
    }
    updates.pop_back();
    llvm::append_range(updates, x.drop_front(tuple));
  } else if (indices.size() != x.size()) { // scatter_c2
    return emitOpError() << "x has rank " << x.size() << ", indices " << indices.size() << " (scatter_c2)";
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

static LogicalResult verifyResizeIndices(ResizeOp op, Value table, int64_t dim) {
  std::optional<tessera::top::TensorData> data = tessera::top::getConstantData(table);
  if (!data || ShapedType::isDynamic(dim)) {
    return success();
  }
  for (int32_t index : data->data<int32_t>()) {
    if (index < 0 || index >= dim) { // resize_c2
      return op.emitOpError() << "a table holds index " << index << ", allowed 0.." << dim - 1 << " (resize_c2)";
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
  SmallVector<int64_t> expected(x.getShape());
  for (auto [i, axis] : llvm::enumerate(getAxes())) {
    Value index = getTables()[2 * i], weight = getTables()[2 * i + 1];
    expected[axis] = y.getDimSize(axis);
    for (Value table : {index, weight}) {
      ArrayRef<int64_t> dims = typeOf(table).getShape();
      if (dims.size() != 2 || !agree(dims[0], y.getDimSize(axis)) || dims[1] < 1 ||
          !agree(dims[1], typeOf(index).getDimSize(1))) { // resize_c1
        return emitOpError() << "a table of axis " << axis << " has dims " << verify::printDims(dims) << ", expected "
                             << y.getDimSize(axis) << " x taps (resize_c1)";
      }
    }
    Type indexType = typeOf(index).getElementType(), weightType = typeOf(weight).getElementType();
    if (!indexType.isSignlessInteger(32) || !weightType.isF32()) { // resize_c4
      return emitOpError() << "tables hold " << indexType << " and " << weightType
                           << ", allowed i32 and f32 (resize_c4)";
    }
    if (!isa<FloatType>(x.getElementType()) && typeOf(index).getDimSize(1) != 1) { // resize_c4
      return emitOpError() << "operand elements are " << x.getElementType()
                           << ", allowed floats unless every index has one tap (resize_c4)";
    }
    if (failed(verifyResizeIndices(*this, index, x.getDimSize(axis)))) {
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

static LogicalResult verifyIndexResult(Operation *op, Value result, ArrayRef<int64_t> dims, StringRef label) {
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
  SmallVector<int64_t> expected(x.getShape());
  expected[getAxis()] = 1;
  return verifyIndexResult(*this, getY(), expected, "arg_reduce_c2");
}

LogicalResult TopKOp::verify() {
  RankedTensorType x = typeOf(getX());
  if (failed(verify::axis(*this, getAxis(), x.getRank(), "topk_c1"))) {
    return failure();
  }
  int64_t k = getK(), dim = x.getDimSize(getAxis());
  if (k < 1 || (!ShapedType::isDynamic(dim) && k > dim)) { // topk_c1
    return emitOpError() << "k = " << k << ", allowed 1.." << dim << " (topk_c1)";
  }
  SmallVector<int64_t> expected(x.getShape());
  expected[getAxis()] = k;
  if (typeOf(getValues()).getElementType() != x.getElementType()) { // topk_c2
    return emitOpError() << "values are " << typeOf(getValues()).getElementType() << ", expected " << x.getElementType()
                         << " (topk_c2)";
  }
  return success(succeeded(verify::dims(*this, getValues(), expected, "values", "topk_c2")) &&
                 succeeded(verifyIndexResult(*this, getIndices(), expected, "topk_c2")));
}

LogicalResult NonMaxSuppressionOp::verify() {
  RankedTensorType boxes = typeOf(getBoxes()), scores = typeOf(getScores());
  if (boxes.getRank() != 3 || scores.getRank() != 3 || !verify::agree(boxes.getDimSize(2), 4) ||
      !verify::agree(boxes.getDimSize(0), scores.getDimSize(0)) ||
      !verify::agree(boxes.getDimSize(1), scores.getDimSize(2))) { // non_max_suppression_c1
    return emitOpError() << "boxes are " << verify::printDims(boxes.getShape()) << " and scores "
                         << verify::printDims(scores.getShape())
                         << ", allowed BxNx4 and BxCxN (non_max_suppression_c1)";
  }
  int64_t k = getK(), count = scores.getDimSize(2);
  if (k < 1 || (!ShapedType::isDynamic(count) && k > count)) { // non_max_suppression_c1
    return emitOpError() << "k = " << k << ", allowed 1.." << count << " (non_max_suppression_c1)";
  }
  bool floats = llvm::all_of(ValueRange{getBoxes(), getScores(), getIouThreshold(), getScoreThreshold()},
                             [](Value value) { return typeOf(value).getElementType().isF32(); });
  bool single = llvm::all_of(ValueRange{getMaxBoxes(), getIouThreshold(), getScoreThreshold()}, [](Value value) {
    return llvm::all_of(typeOf(value).getShape(), [](int64_t dim) { return dim == 1; });
  });
  if (!floats || !single || !typeOf(getMaxBoxes()).getElementType().isSignlessInteger(64)) {
    // non_max_suppression_c2
    return emitOpError("operands are not f32 with an i64 maxBoxes and limits of one element (non_max_suppression_c2)");
  }
  return verifyIndexResult(*this, getY(), {boxes.getDimSize(0), scores.getDimSize(1), k}, "non_max_suppression_c3");
}

LogicalResult CumSumOp::verify() {
  return success(succeeded(verify::axis(*this, getAxis(), typeOf(getX()).getRank(), "cumsum_c1")) &&
                 succeeded(verify::sameType(*this, getX(), getY(), "cumsum_c2")));
}
