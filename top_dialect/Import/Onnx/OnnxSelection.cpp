//===- OnnxSelection.cpp - Handlers of operators that select a data-dependent number of elements --===//
// SPDX-License-Identifier: Apache-2.0
//
// Their results have the largest possible size (PaddedRows.h), or the actual size if the data is constant.
#include "top_dialect/IR/Constants.h"
#include "top_dialect/Import/Onnx/GraphImporter.h"
#include "top_dialect/Import/Onnx/OnnxModel.h"
#include "top_dialect/Import/Onnx/PaddedRows.h"

#include "llvm/Support/FormatVariadic.h"

#include <limits>
#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

/// Limit on the number of keys for sorting, because each key needs its own sort.
constexpr int64_t kMostKeys = 64;
/// Limit on the number of elements to select from, because tables of this size become part of the model.
constexpr int64_t kMostElements = int64_t(1) << 24;

int64_t elements(Value x) {
  auto shape = NodeImporter::shape(x);
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

bool requireStatic(NodeImporter &n, llvm::ArrayRef<Value> values) {
  for (Value value : values) {
    if (llvm::any_of(NodeImporter::shape(value), mlir::ShapedType::isDynamic)) {
      n.unsupported("needs static dims: fix them with --input_shapes");
    } else if (elements(value) == 0) {
      n.unsupported("an operand without elements");
    } else if (elements(value) > kMostElements) {
      n.unsupported(
          llvm::formatv("it selects from {0} elements; up to {1} are supported", elements(value), kMostElements));
    }
  }
  return !n.failed();
}

Value iota(NodeImporter &n, int64_t count) {
  Ints values(count);
  std::iota(values.begin(), values.end(), 0);
  return n.intVector(values);
}

Value zeros(NodeImporter &n, int64_t count) { return n.intVector(Ints(count, 0)); }

Value widen(NodeImporter &n, Value flags) { return n.cast(flags, n.b.getI64Type()); }

Value sum(NodeImporter &n, Value counts) { return n.create<ReduceOp>(counts, ReduceKind::sum, Ints{0}, false); }

/// Returns the number of each set flag, counted from 0.
Value ranks(NodeImporter &n, Value ones) {
  return n.create<SubOp>(n.create<CumSumOp>(ones, 0, false, false), n.scalarLike(ones, 1));
}

/// Computes y[places[i]] = values[i] in a vector of |size| zeros.
Value scatter(NodeImporter &n, int64_t size, Value places, Value values,
              ScatterReduction reduction = ScatterReduction::none) {
  return n.create<ScatterElementsOp>(zeros(n, size), places, values, 0, reduction);
}

Value sliceFront(NodeImporter &n, Value x, int64_t axis, int64_t size) {
  Ints sizes(NodeImporter::shape(x)), starts(sizes.size(), 0), steps(sizes.size(), 1);
  if (n.failed() || sizes[axis] == size) {
    return x;
  }
  sizes[axis] = size;
  return n.create<SliceOp>(x, starts, sizes, steps);
}

/// The indices of the set |flags| (i1 [size]) in order, followed by zeros, and their count.
struct Selected {
  Value indices; ///< i64 [size]
  Value count;   ///< i64 []
};

Selected selectFlags(NodeImporter &n, Value flags) {
  int64_t size = NodeImporter::dim(flags, 0);
  Value ones = widen(n, flags);
  // Unset elements are written after the end.
  Value places = n.create<WhereOp>(flags, ranks(n, ones), n.scalar(n.b.getI64Type(), static_cast<double>(size)));
  return {sliceFront(n, scatter(n, size + 1, places, iota(n, size)), 0, size), sum(n, ones)};
}

/// Cuts the vector |values| to its real entries if sizes that a run computes become symbols. Returns their number, or
/// |size| if the vector stays as it is. The number is dim |axis| of output |i|.
Dim cutToCount(NodeImporter &n, Value &values, Value count, unsigned i, int64_t axis, int64_t size) {
  if (!n.bindsSizes() || getConstantInts(count)) {
    return size;
  }
  Dim bound = n.bindCount(count, i, axis, size);
  values = n.slice(values, {Dim(0)}, {bound}, {1});
  return bound;
}

/// Sets output |i| to |value|, where the first |count| entries along |axis| are real.
void setSelected(NodeImporter &n, unsigned i, Value value, int64_t axis, Value count, bool filled = false) {
  if (n.failed() || !n.wantsOutput(i)) {
    return;
  }
  if (NodeImporter::sizes(value)[axis].isSymbolic()) { // the real entries alone (cutToCount)
    n.setOutput(i, value);
    return;
  }
  auto known = getConstantInts(count);
  if (known) {
    n.setOutput(i, sliceFront(n, value, axis, known->front()));
    return;
  }
  n.graph.paddedRows().mark(value, {axis, count, describeNode(n.node), filled});
  n.setOutput(i, value);
}

//===----------------------------------------------------------------------===//
// NonMaxSuppression
//===----------------------------------------------------------------------===//

/// Returns input |i| as a scalar of type |element|, or |byDefault| if it is absent.
Value limit(NodeImporter &n, unsigned i, mlir::Type element, double byDefault) {
  if (!n.hasInput(i)) {
    return n.scalar(element, byDefault);
  }
  Value value = n.input(i);
  if (!n.failed() && (!mlir::cast<mlir::RankedTensorType>(value.getType()).hasStaticShape() || elements(value) != 1)) {
    n.fail(llvm::formatv("input {0} is not a single number", i));
  }
  return n.cast(n.reshape(value, {}), element);
}

void nonMaxSuppression(NodeImporter &n) {
  Value boxes = n.input(0), scores = n.input(1);
  if (n.failed() || !requireStatic(n, {boxes, scores})) {
    return;
  }
  if (NodeImporter::rank(boxes) != 3 || NodeImporter::rank(scores) != 3) {
    n.fail(llvm::formatv("boxes and scores have rank {0} and {1}; both must have 3", NodeImporter::rank(boxes),
                         NodeImporter::rank(scores)));
    return;
  }
  int64_t batch = NodeImporter::dim(scores, 0), classes = NodeImporter::dim(scores, 1),
          count = NodeImporter::dim(scores, 2);
  mlir::Type i64 = n.b.getI64Type(), f32 = n.b.getF32Type();
  Value most = limit(n, 2, i64, 0);
  int64_t k = count;
  if (auto known = getConstantInts(most); known && !n.failed()) {
    k = std::min(count, known->front());
  }
  if (k < 1) {
    n.setOutput(0,
                createConstant(n.b, n.loc, mlir::RankedTensorType::get({0, 3}, i64), std::vector<char>(), "no_boxes"));
    return;
  }
  Value iou = limit(n, 3, f32, 0), least = limit(n, 4, f32, -std::numeric_limits<double>::infinity());
  Value chosen =
      n.create<NonMaxSuppressionOp>(boxes, scores, most, iou, least, k, n.intAttr("center_point_box", 0) != 0);
  int64_t rows = batch * classes * k;
  Value numbers = n.reshape(chosen, {rows});
  Value flags = n.create<CompareOp>(numbers, n.scalar(i64, 0), CompareKind::ge);
  Ints owners;
  for (int64_t row = 0; row < rows; ++row) {
    owners.append({row / k / classes, row / k % classes});
  }
  Value table =
      n.create<ConcatOp>(mlir::ValueRange{n.reshape(n.intVector(owners), {rows, 2}), n.reshape(numbers, {rows, 1})}, 1);
  Selected front = selectFlags(n, flags);
  if (cutToCount(n, front.indices, front.count, 0, 0, rows).isSymbolic()) {
    n.setOutput(0, n.create<GatherOp>(table, front.indices, 0));
    return;
  }
  if (batch * classes > 1) { // the boxes of a single class are already at the front
    table = n.create<GatherOp>(table, front.indices, 0);
  }
  Value real = n.create<CompareOp>(n.reshape(iota(n, rows), {rows, 1}), front.count, CompareKind::lt);
  Value y = n.create<WhereOp>(real, table, n.scalar(i64, -1));
  setSelected(n, 0, y, 0, front.count, true);
}

//===----------------------------------------------------------------------===//
// NonZero, Compress
//===----------------------------------------------------------------------===//

void nonZero(NodeImporter &n) {
  Value x = n.input(0);
  if (n.failed()) {
    return;
  }
  Ints shape(NodeImporter::shape(x));
  if (isConstant(x) || llvm::any_of(shape, mlir::ShapedType::isDynamic) || elements(x) == 0) {
    n.setOutput(0, n.create<NonZeroOp>(x));
    return;
  }
  int64_t size = elements(x), rank = NodeImporter::rank(x);
  if (!requireStatic(n, {x})) {
    return;
  }
  if (rank == 0) {
    n.unsupported("positions in a scalar are not supported");
    return;
  }
  Value flat = n.reshape(x, {size});
  bool isFlag = NodeImporter::elementType(x).isInteger(1);
  Value flags = isFlag ? flat : n.create<CompareOp>(flat, n.scalarLike(flat, 0), CompareKind::ne);
  Selected front = selectFlags(n, flags);
  Dim count = cutToCount(n, front.indices, front.count, 0, 1, size);
  // The coordinate d of each element. For a vector this is its index.
  llvm::SmallVector<Value> coordinates;
  for (int64_t d = 0, stride = size; d < rank; ++d) {
    stride /= shape[d];
    Ints table;
    for (int64_t i = 0; i < size; ++i) {
      table.push_back(i / stride % shape[d]);
    }
    Value one = rank == 1 ? front.indices : n.create<GatherOp>(n.intVector(table), front.indices, 0);
    coordinates.push_back(n.reshapeTo(one, {Dim(1), count}));
  }
  setSelected(n, 0, rank == 1 ? coordinates.front() : n.create<ConcatOp>(coordinates, 0), 1, front.count);
}

void compress(NodeImporter &n) {
  Value x = n.input(0), condition = n.input(1);
  if (n.failed() || !requireStatic(n, {x, condition})) {
    return;
  }
  if (!NodeImporter::elementType(condition).isInteger(1) || NodeImporter::rank(condition) != 1) {
    n.fail("its condition is not a boolean vector");
    return;
  }
  bool flat = !n.hasAttr("axis");
  x = flat ? n.reshape(x, {elements(x)}) : x;
  int64_t axis = flat ? 0 : n.normalizeAxis(n.intAttr("axis", 0), NodeImporter::rank(x));
  int64_t size = NodeImporter::dim(x, axis);
  if (n.failed()) {
    return;
  }
  // The condition may be shorter than the axis. If it is longer, the additional entries are ignored.
  condition = sliceFront(n, condition, 0, std::min(size, NodeImporter::dim(condition, 0)));
  Selected front = selectFlags(n, condition);
  if (auto known = getConstantInts(front.count); known && known->front() == 0) {
    n.unsupported("its constant condition selects no elements");
    return;
  }
  if (auto known = getConstantInts(front.count)) {
    front.indices = sliceFront(n, front.indices, 0, known->front());
    n.setOutput(0, n.create<GatherOp>(x, front.indices, axis));
    return;
  }
  cutToCount(n, front.indices, front.count, 0, axis, NodeImporter::dim(condition, 0));
  setSelected(n, 0, n.create<GatherOp>(x, front.indices, axis), axis, front.count);
}

//===----------------------------------------------------------------------===//
// Unique
//===----------------------------------------------------------------------===//

Value gather(NodeImporter &n, Value x, Value indices) { return n.create<GatherOp>(x, indices, 0); }

/// Returns the order that sorts the |rows| [count, keys] by the first key, then the second, and so on. It is stable.
Value sortRows(NodeImporter &n, Value rows) {
  int64_t count = NodeImporter::dim(rows, 0), keys = NodeImporter::dim(rows, 1);
  Value order;
  for (int64_t key = keys - 1; key >= 0; --key) {
    Value column = n.reshape(n.create<SliceOp>(rows, Ints{0, key}, Ints{count, 1}, Ints{1, 1}), {count});
    column = order ? gather(n, column, order) : column;
    Value next = n.createMulti<TopKOp>(2, column, count, 0, false)[1];
    order = order ? gather(n, order, next) : next;
  }
  return order;
}

/// Returns whether each row of the sorted |rows| differs from the previous row.
Value startsGroup(NodeImporter &n, Value rows) {
  int64_t count = NodeImporter::dim(rows, 0), keys = NodeImporter::dim(rows, 1);
  Value first = n.intVector({1});
  if (count == 1) {
    return first;
  }
  Value before = n.create<SliceOp>(rows, Ints{0, 0}, Ints{count - 1, keys}, Ints{1, 1});
  Value after = n.create<SliceOp>(rows, Ints{1, 0}, Ints{count - 1, keys}, Ints{1, 1});
  Value differs = widen(n, n.create<CompareOp>(before, after, CompareKind::ne));
  Value any = n.create<ReduceOp>(differs, ReduceKind::max, Ints{1}, false);
  return n.create<ConcatOp>(mlir::ValueRange{first, any}, 0);
}

void unique(NodeImporter &n) {
  Value x = n.input(0);
  if (n.failed() || !requireStatic(n, {x})) {
    return;
  }
  bool flat = !n.hasAttr("axis");
  x = flat ? n.reshape(x, {elements(x)}) : x;
  int64_t rank = NodeImporter::rank(x), axis = flat ? 0 : n.normalizeAxis(n.intAttr("axis", 0), rank);
  int64_t count = NodeImporter::dim(x, axis), keys = elements(x) / count;
  if (!n.failed() && keys > kMostKeys) {
    n.unsupported(llvm::formatv("slices to compare have {0} elements; up to {1} are supported", keys, kMostKeys));
  }
  if (n.failed()) {
    return;
  }
  Ints perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  std::rotate(perm.begin(), perm.begin() + axis, perm.begin() + axis + 1);
  Value rows = n.reshape(n.transpose(x, perm), {count, keys});
  rows = NodeImporter::elementType(rows).isInteger(1) ? n.cast(rows, n.b.getI32Type()) : rows;
  // Groups of equal rows are numbered in sorted order. The sort is stable, so a group begins with its first row.
  Value order = sortRows(n, rows), starts = startsGroup(n, gather(n, rows, order));
  Value group = ranks(n, starts), groups = sum(n, starts);
  Value end = n.scalar(n.b.getI64Type(), static_cast<double>(count));
  Value isStart = n.cast(starts, n.b.getI1Type());
  Value first = sliceFront(n, scatter(n, count + 1, n.create<WhereOp>(isStart, group, end), order), 0, count);
  Value inverse = scatter(n, count, order, group);
  Value sizes = scatter(n, count, group, n.intVector(Ints(count, 1)), ScatterReduction::add);
  if (n.intAttr("sorted", 1) == 0) {
    // Number the groups by their first rows instead. Entries that are not a group come last.
    Value real = n.create<CompareOp>(iota(n, count), groups, CompareKind::lt);
    Value moved = n.createMulti<TopKOp>(2, n.create<WhereOp>(real, first, end), count, 0, false)[1];
    first = gather(n, first, moved);
    sizes = gather(n, sizes, moved);
    inverse = gather(n, scatter(n, count, moved, iota(n, count)), inverse);
  }
  if (Dim real = cutToCount(n, first, groups, 0, axis, count); real.isSymbolic()) {
    sizes = n.slice(sizes, {Dim(0)}, {real}, {1});
  }
  setSelected(n, 1, first, 0, groups);
  n.setOutput(2, inverse);
  setSelected(n, 3, sizes, 0, groups);
  setSelected(n, 0, n.create<GatherOp>(x, first, axis), axis, groups);
}

constexpr HandlerEntry kHandlers[] = {
    {"", "NonMaxSuppression", nonMaxSuppression, 10},
    {"", "NonZero", nonZero, 9},
    {"", "Compress", compress, 9},
    {"", "Unique", unique, 11},
};

} // namespace

llvm::ArrayRef<HandlerEntry> selectionHandlers() { return kHandlers; }

} // namespace tessera::top::onnx_import
