//===- TopIndexOps.cpp - Indexing, resize, einsum, recurrent: verify and infer ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/IR/SymbolicLists.h"
#include "top_dialect/IR/TopShapeOps.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::top;
using namespace tessera::top::detail;

//===----------------------------------------------------------------------===//
// Gather and scatter
//===----------------------------------------------------------------------===//

LogicalResult GatherOp::inferShapes(Types &types) {
  int64_t axis = getAxis();
  Dims x = shapeOf(getX());
  if (failed(checkAxis(*this, axis, x.size(), "C1")) || failed(checkIndexType(*this, getIndices(), "C2"))) {
    return failure(); // gather_c1, gather_c2
  }
  Dims shape(ArrayRef(x).take_front(axis));
  llvm::append_range(shape, shapeOf(getIndices()));
  llvm::append_range(shape, ArrayRef(x).drop_front(axis + 1));
  return addType(*this, shape, elementOf(getX()), types);
}

LogicalResult GatherElementsOp::inferShapes(Types &types) {
  if (failed(checkAxis(*this, getAxis(), rankOf(getX()), "C1")) || // gather_elements_c1
      failed(checkIndexType(*this, getIndices(), "C2"))) {         // gather_elements_c2
    return failure();
  }
  if (rankOf(getIndices()) != rankOf(getX())) { // gather_elements_c2
    return emitOpError() << "indices have rank " << rankOf(getIndices()) << ", input rank " << rankOf(getX())
                         << "; they must be equal (C2)";
  }
  return addType(*this, shapeOf(getIndices()), elementOf(getX()), types);
}

LogicalResult GatherNdOp::inferShapes(Types &types) {
  int64_t batch = getBatchDims();
  Dims x = shapeOf(getX());
  Dims indices = shapeOf(getIndices());
  if (batch < 0 || batch >= static_cast<int64_t>(std::min(x.size(), indices.size()))) { // gather_nd_c1
    return emitOpError() << "batchDims " << batch << " is not below the ranks " << x.size() << " and " << indices.size()
                         << " (C1)";
  }
  if (failed(checkIndexType(*this, getIndices(), "C2"))) { // gather_nd_c2
    return failure();
  }
  Dim tuple = indices.back();
  int64_t depth = tuple.isKnown() ? tuple.value() : -1;
  if (depth < 1 || batch + depth > static_cast<int64_t>(x.size())) { // gather_nd_c3
    return emitOpError() << "index tuples have " << formatShape({tuple}) << " entries, allowed are 1 to "
                         << x.size() - batch << " (C3)";
  }
  Dims shape(ArrayRef(indices).drop_back());
  llvm::append_range(shape, ArrayRef(x).drop_front(batch + depth));
  return addType(*this, shape, elementOf(getX()), types);
}

LogicalResult ScatterElementsOp::inferShapes(Types &types) {
  if (failed(checkAxis(*this, getAxis(), rankOf(getX()), "C1")) || // scatter_elements_c1
      failed(checkIndexType(*this, getIndices(), "C3")) ||         // scatter_elements_c3
      failed(checkSameElement(*this, {getX(), getUpdates()}, "C4"))) {
    return failure(); // scatter_elements_c4
  }
  if (rankOf(getIndices()) != rankOf(getX()) || !shapesAgree(shapeOf(getIndices()), shapeOf(getUpdates()))) {
    return emitOpError() << "input " << formatShape(shapeOf(getX())) << ", indices " // scatter_elements_c2
                         << formatShape(shapeOf(getIndices())) << ", updates " << formatShape(shapeOf(getUpdates()))
                         << ": one rank, and indices and updates of one shape are needed (C2)";
  }
  return addType(*this, shapeOf(getX()), elementOf(getX()), types);
}

LogicalResult ScatterNdOp::inferShapes(Types &types) {
  Dims x = shapeOf(getX());
  Dims indices = shapeOf(getIndices());
  if (failed(checkIndexType(*this, getIndices(), "C2")) ||             // scatter_nd_c2
      failed(checkSameElement(*this, {getX(), getUpdates()}, "C3"))) { // scatter_nd_c3
    return failure();
  }
  int64_t depth = indices.empty() || !indices.back().isKnown() ? -1 : indices.back().value();
  if (depth < 1 || depth > static_cast<int64_t>(x.size())) { // scatter_nd_c1
    return emitOpError() << "index tuples of indices " << formatShape(indices) << " do not fit rank " << x.size()
                         << " (C1)";
  }
  Dims expected(ArrayRef(indices).drop_back());
  llvm::append_range(expected, ArrayRef(x).drop_front(depth));
  if (!shapesAgree(expected, shapeOf(getUpdates()))) { // scatter_nd_c1
    return emitOpError() << "updates are " << formatShape(shapeOf(getUpdates())) << ", must be "
                         << formatShape(expected) << " (C1)";
  }
  return addType(*this, x, elementOf(getX()), types);
}

LogicalResult OneHotOp::inferShapes(Types &types) {
  int64_t axis = getAxis();
  int64_t depth = getDepth();
  Dims shape = shapeOf(getIndices());
  if (failed(checkAxis(*this, axis, shape.size() + 1, "C1"))) { // one_hot_c1
    return failure();
  }
  if (depth < 1) { // one_hot_c2
    return emitOpError() << "depth " << depth << " must be positive (C2)";
  }
  if (!shapesAgree(shapeOf(getValues()), {2})) { // one_hot_c3
    return emitOpError() << "values are " << formatShape(shapeOf(getValues())) << ", must be 2 (C3)";
  }
  shape.insert(shape.begin() + axis, Dim(depth));
  return addType(*this, shape, elementOf(getValues()), types);
}

LogicalResult NonZeroOp::inferShapes(Types &types) {
  return addType(*this, {rankOf(getX()), ShapedType::kDynamic}, IntegerType::get(getContext(), 64), types);
}

LogicalResult TriluOp::inferShapes(Types &types) {
  if (rankOf(getX()) < 2) { // trilu_c1
    return emitOpError() << "input has rank " << rankOf(getX()) << ", must be at least 2 (C1)";
  }
  return addType(*this, shapeOf(getX()), elementOf(getX()), types);
}

//===----------------------------------------------------------------------===//
// Depth, space, resize
//===----------------------------------------------------------------------===//

LogicalResult DepthToSpaceOp::inferShapes(Types &types) {
  Dims x = shapeOf(getX());
  int64_t block = getBlockSize();
  bool fits = x.size() == 4 && block >= 1 && block < (1 << 15) && mayDivide(block * block, x[1]);
  if (!fits) { // depth_to_space_c1
    return emitOpError() << "block " << block << " squared must divide the channels of a rank 4 input, which is "
                         << formatShape(x) << " (C1)";
  }
  Dim channels = floorDiv(x[1], block * block);
  return addType(*this, {x[0], channels, mulDims(x[2], block), mulDims(x[3], block)}, elementOf(getX()), types);
}

LogicalResult SpaceToDepthOp::inferShapes(Types &types) {
  Dims x = shapeOf(getX());
  int64_t block = getBlockSize();
  if (x.size() != 4 || block < 1 || block >= (1 << 15) || !mayDivide(block, x[2]) ||
      !mayDivide(block, x[3])) { // space_to_depth_c1
    return emitOpError() << "block " << block << " must divide height and width of a rank 4 input, which is "
                         << formatShape(x) << " (C1)";
  }
  Dim channels = mulDims(x[1], block * block);
  return addType(*this, {x[0], channels, floorDiv(x[2], block), floorDiv(x[3], block)}, elementOf(getX()), types);
}

LogicalResult ResizeOp::inferShapes(Types &types) {
  Dims x = shapeOf(getX());
  if (getSizes().size() != x.size() || getScales().size() != x.size() ||
      (!getRoi().empty() && getRoi().size() != 2 * x.size())) { // resize_c1
    return emitOpError() << "input has rank " << x.size() << ", but sizes " << getSizes().size() << ", scales "
                         << getScales().size() << ", roi " << getRoi().size() << " entries (C1)";
  }
  Dims shape;
  for (size_t d = 0; d < x.size(); ++d) {
    if (!(getScales()[d] > 0) || !std::isfinite(getScales()[d])) { // resize_c2
      return emitOpError() << "scale " << getScales()[d] << " of dim " << d << " must be positive (C2)";
    }
    Dim size = sizeAt(*this, kDimsAttr, getSizes(), d);
    bool isPossible = size.isUnknown() ? x[d].isUnknown() : minOf(size) >= 0;
    if (!isPossible || getSizes()[d] < -1 || (!size.isUnknown() && maxOf(size) > 0 && x[d].is(0))) { // resize_c3
      return emitOpError() << "size " << (size.isUnknown() ? std::to_string(getSizes()[d]) : toText(size)) << " of dim "
                           << d << " is not possible for an input of " << formatShape(x) << " (C3)";
    }
    shape.push_back(size);
  }
  return addType(*this, shape, elementOf(getX()), types);
}

//===----------------------------------------------------------------------===//
// Einsum
//===----------------------------------------------------------------------===//

LogicalResult EinsumOp::inferShapes(Types &types) {
  auto [left, right] = getEquation().split("->");
  SmallVector<StringRef> terms;
  left.split(terms, ',');
  if (getInputs().empty() || terms.size() != getInputs().size() || !getEquation().contains("->")) { // einsum_c1
    return emitOpError() << "equation '" << getEquation() << "' has " << terms.size() << " terms for "
                         << getInputs().size() << " operands (C1)";
  }
  llvm::MapVector<char, Dim> sizes;
  for (auto [term, input] : llvm::zip(terms, getInputs())) {
    if (static_cast<int64_t>(term.size()) != rankOf(input)) { // einsum_c1
      return emitOpError() << "term '" << term << "' does not fit an operand of rank " << rankOf(input) << " (C1)";
    }
    for (auto [letter, dim] : llvm::zip(term, shapeOf(input))) {
      auto [it, isNew] = sizes.insert({letter, dim});
      if (!llvm::isAlpha(letter) || !dimsAgree(it->second, dim)) { // einsum_c2
        return emitOpError() << "index '" << letter << "' has sizes " << formatShape({it->second}) << " and "
                             << formatShape({dim}) << " (C2)";
      }
      it->second = mergeDims(it->second, dim);
    }
  }
  Dims shape;
  for (char letter : right) {
    auto size = sizes.find(letter);
    if (size == sizes.end()) { // einsum_c3
      return emitOpError() << "result index '" << letter << "' is in no operand (C3)";
    }
    shape.push_back(size->second);
  }
  return addType(*this, shape, elementOf(getInputs().front()), types);
}

//===----------------------------------------------------------------------===//
// Recurrent
//===----------------------------------------------------------------------===//

LogicalResult RnnOp::inferShapes(Types &types) {
  constexpr int64_t kGates[] = {1, 3, 4};
  constexpr size_t kActivations[] = {1, 2, 3};
  int64_t hidden = getHiddenSize();
  int64_t gates = mulDims(kGates[static_cast<int>(getKind())], hidden);
  int64_t directions = getDirection() == RnnDirection::bidirectional ? 2 : 1;
  Dims x = shapeOf(getX());
  if (x.size() != 3 || hidden < 1) { // rnn_c1
    return emitOpError() << "input is " << formatShape(x) << " with hiddenSize " << hidden
                         << ", needed are rank 3 and a positive size (C1)";
  }
  auto check = [&](StringRef name, Value value, ArrayRef<Dim> expected) {
    if (value && !shapesAgree(shapeOf(value), expected)) { // rnn_c1
      return LogicalResult(emitOpError() << name << " is " << formatShape(shapeOf(value)) << ", must be "
                                         << formatShape(expected) << " (C1)");
    }
    return success();
  };
  if (failed(check("w", getW(), {directions, gates, x[2]})) ||
      failed(check("r", getR(), {directions, gates, hidden})) ||
      failed(check("bias", getBias(), {directions, mulDims(2, gates)})) ||
      failed(check("sequenceLens", getSequenceLens(), {x[1]})) ||
      failed(check("initialH", getInitialH(), {directions, x[1], hidden})) ||
      failed(check("initialC", getInitialC(), {directions, x[1], hidden})) ||
      failed(check("peephole", getPeephole(), {directions, mulDims(3, hidden)}))) {
    return failure();
  }
  size_t activations = directions * kActivations[static_cast<int>(getKind())];
  if (getActivations().size() != activations) { // rnn_c2
    return emitOpError() << "has " << getActivations().size() << " activations, must have " << activations << " (C2)";
  }
  Type element = elementOf(getX());
  return success(succeeded(addType(*this, {x[0], directions, x[1], hidden}, element, types)) &&
                 succeeded(addType(*this, {directions, x[1], hidden}, element, types)) &&
                 succeeded(addType(*this, {directions, x[1], hidden}, element, types)));
}
