//===- OnnxSelection.cpp - Handlers of operators that select a data-dependent number of elements --===//
// SPDX-License-Identifier: Apache-2.0
//
// Their results have the largest possible size (PaddedRows.h), or the actual size if the data is constant.
#include "top_dialect/IR/BindDims.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/Import/Onnx/Control/PaddedRows.h"
#include "top_dialect/Import/Onnx/GraphImporter.h"
#include "top_dialect/Import/Onnx/Model/OnnxModel.h"
#include "top_dialect/Import/Onnx/Sizes/IndexArithmetic.h"

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

/// Checks the number of elements of |values|. Sizes that are expressions are allowed where sizes can be bound.
bool requireSizes(NodeImporter &n, llvm::ArrayRef<Value> values) {
  for (Value value : values) {
    Dim count = countElements(value);
    if (!count.isKnown() && (count.isUnknown() || !n.bindsSizes())) {
      n.unsupported("needs static dims: fix them with --input_shapes");
    } else if (count.is(0)) {
      n.unsupported("an operand without elements");
    } else if (maxOf(count) > kMostElements) {
      n.unsupported(
          llvm::formatv("it selects from up to {0} elements; {1} are supported", maxOf(count), kMostElements));
    }
  }
  return !n.failed();
}

Value iota(NodeImporter &n, int64_t count) {
  Ints values(count);
  std::iota(values.begin(), values.end(), 0);
  return n.intVector(values);
}

Value zeros(NodeImporter &n, Dim count) {
  return count.isKnown() ? n.intVector(Ints(count.value(), 0)) : n.expandTo(n.intVector({0}), {count});
}

Value widen(NodeImporter &n, Value flags) { return n.cast(flags, n.b.getI64Type()); }

Value sum(NodeImporter &n, Value counts) { return n.create<ReduceOp>(counts, ReduceKind::sum, Ints{0}, false); }

/// Returns the number of each set flag, counted from 0.
Value ranks(NodeImporter &n, Value ones) {
  return n.create<SubOp>(n.create<CumSumOp>(ones, 0, false, false), n.scalarLike(ones, 1));
}

/// Computes y[places[i]] = values[i] in a vector of |size| zeros.
Value scatter(NodeImporter &n, Dim size, Value places, Value values,
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
  Value indices; ///< i64, as many as the largest size
  Value count;   ///< i64 []
};

Selected selectFlags(NodeImporter &n, Value flags) {
  Dim size = NodeImporter::sizes(flags)[0];
  int64_t most = maxOf(size);
  Value ones = widen(n, flags);
  // Unset elements are written after the end.
  Value places = n.create<WhereOp>(flags, ranks(n, ones), n.scalar(n.b.getI64Type(), static_cast<double>(most)));
  return {sliceFront(n, scatter(n, most + 1, places, iotaTo(n, size)), 0, most), sum(n, ones)};
}

/// Returns the first op that |find| returns for a user of |x| of type |OpTy| in its block; null if there is none.
template <typename OpTy>
BindOp findFromUsers(Value x, llvm::function_ref<BindOp(OpTy user)> find) {
  for (mlir::Operation *user : x.getUsers()) {
    if (auto op = mlir::dyn_cast<OpTy>(user); op && user->getBlock() == x.getParentBlock()) {
      if (BindOp found = find(op)) {
        return found;
      }
    }
  }
  return {};
}

/// Returns the op that binds a symbol to the number of set |flags|, as cutToCount() does; null if there is none.
BindOp findCountOfFlags(Value flags) {
  auto bound = [](ReshapeOp one) { return findFromUsers<BindOp>(one.getY(), [](BindOp bind) { return bind; }); };
  auto counted = [&](ReduceOp sum) {
    return sum.getKind() == ReduceKind::sum ? findFromUsers<ReshapeOp>(sum.getY(), bound) : BindOp();
  };
  return findFromUsers<CastOp>(flags, [&](CastOp ones) {
    bool isWide = NodeImporter::elementType(ones.getY()).isInteger(64);
    return isWide && Shape(flags).rank() == 1 ? findFromUsers<ReduceOp>(ones.getY(), counted) : BindOp();
  });
}

/// Returns the op that binds a symbol to the number of elements of |x| that are not 0, of an earlier NonZero of the
/// same tensor; null if there is none. Networks write y[mask] = f(x[mask]) with several NonZero of one mask.
BindOp findCount(Value x) {
  bool isFlag = NodeImporter::elementType(x).isInteger(1);
  auto ofVector = [&](Value flat) {
    return isFlag ? findCountOfFlags(flat) : findFromUsers<CompareOp>(flat, [&](CompareOp compare) {
      auto other = getConstantDoubles(compare.getB());
      bool isNonZero = compare.getKind() == CompareKind::ne && compare.getA() == flat && other &&
                       llvm::all_of(*other, [](double value) { return value == 0; });
      return isNonZero ? findCountOfFlags(compare.getY()) : BindOp();
    });
  };
  if (Shape(x).rank() == 1) {
    return ofVector(x);
  }
  return findFromUsers<ReshapeOp>(x, [&](ReshapeOp flat) { return ofVector(flat.getY()); });
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

/// Returns the batch entry and the class of each of |rows| selected boxes, of which a class has |k|, as [rows, 2].
Value ownersOf(NodeImporter &n, Dim rows, Dim classes, int64_t k) {
  if (!rows.isKnown()) {
    Arithmetic i{n};
    Value perClass = i.div(iotaTo(n, rows), i.number(double(k))), size = sizeVector(n, {classes});
    Value entry = i.div(perClass, size), kind = i.sub(perClass, i.mul(entry, size));
    auto column = [&](Value vector) { return n.reshapeTo(vector, {rows, Dim(1)}); };
    return n.create<ConcatOp>(mlir::ValueRange{column(entry), column(kind)}, 1);
  }
  Ints owners;
  for (int64_t row = 0; row < rows.value(); ++row) {
    owners.append({row / k / classes.value(), row / k % classes.value()});
  }
  return n.reshape(n.intVector(owners), {rows.value(), 2});
}

void nonMaxSuppression(NodeImporter &n) {
  Value boxes = n.input(0), scores = n.input(1);
  if (n.failed() || !requireSizes(n, {boxes, scores})) {
    return;
  }
  if (NodeImporter::rank(boxes) != 3 || NodeImporter::rank(scores) != 3) {
    n.fail(llvm::formatv("boxes and scores have rank {0} and {1}; both must have 3", NodeImporter::rank(boxes),
                         NodeImporter::rank(scores)));
    return;
  }
  auto shape = NodeImporter::sizes(scores);
  Dim classes = shape[1];
  int64_t count = maxOf(shape[2]);
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
  Dim rows = shape[0] * classes * k;
  Value numbers = n.reshapeTo(chosen, {rows});
  Value flags = n.create<CompareOp>(numbers, n.scalar(i64, 0), CompareKind::ge);
  Value table =
      n.create<ConcatOp>(mlir::ValueRange{ownersOf(n, rows, classes, k), n.reshapeTo(numbers, {rows, Dim(1)})}, 1);
  Selected front = selectFlags(n, flags);
  if (cutToCount(n, front.indices, front.count, 0, 0, maxOf(rows)).isSymbolic()) {
    n.setOutput(0, n.create<GatherOp>(table, front.indices, 0));
    return;
  }
  if (maxOf(rows) > k) { // the boxes of a single class are already at the front
    table = n.create<GatherOp>(table, front.indices, 0);
  }
  Value real = n.create<CompareOp>(n.reshapeTo(iotaTo(n, rows), {rows, Dim(1)}), front.count, CompareKind::lt);
  Value y = n.create<WhereOp>(real, table, n.scalar(i64, -1));
  setSelected(n, 0, y, 0, front.count, true);
}

//===----------------------------------------------------------------------===//
// NonZero, Compress
//===----------------------------------------------------------------------===//

/// Returns coordinate |d| in a tensor of |sizes| of the elements with |indices|.
Value coordinateOf(NodeImporter &n, Value indices, llvm::ArrayRef<Dim> sizes, int64_t d) {
  if (sizes.size() == 1) {
    return indices;
  }
  Dim stride = 1;
  for (Dim size : sizes.drop_front(d + 1)) {
    stride *= size;
  }
  Dim count = sizes[d] * stride;
  for (Dim size : sizes.take_front(d)) {
    count *= size;
  }
  if (!count.isKnown()) {
    Arithmetic i{n};
    return i.mod(i.div(indices, sizeVector(n, {stride})), sizeVector(n, {sizes[d]}));
  }
  Ints table;
  for (int64_t i = 0; i < count.value(); ++i) {
    table.push_back(i / stride.value() % sizes[d].value());
  }
  return n.create<GatherOp>(n.intVector(table), indices, 0);
}

void nonZero(NodeImporter &n) {
  Value x = n.input(0);
  if (n.failed()) {
    return;
  }
  auto shape = NodeImporter::sizes(x);
  bool isOpen = !Shape(x).isKnown();
  if (isConstant(x) || (isOpen && !(Shape(x).isDetermined() && n.bindsSizes())) || countElements(x).is(0)) {
    n.setOutput(0, n.create<NonZeroOp>(x));
    return;
  }
  int64_t rank = NodeImporter::rank(x);
  if (!requireSizes(n, {x})) {
    return;
  }
  if (rank == 0) {
    n.unsupported("positions in a scalar are not supported");
    return;
  }
  Dim size = countElements(x);
  Value flat = n.reshapeTo(x, {size});
  bool isFlag = NodeImporter::elementType(x).isInteger(1);
  Value flags = isFlag ? flat : n.create<CompareOp>(flat, n.scalarLike(flat, 0), CompareKind::ne);
  Selected front = selectFlags(n, flags);
  Dim count = size;
  BindOp earlier = x.getParentBlock() == n.b.getInsertionBlock() ? findCount(x) : BindOp();
  if (earlier) {
    count = sizeOf(earlier.getSymbol());
    front.indices = n.slice(front.indices, {Dim(0)}, {count}, {1});
  } else {
    count = cutToCount(n, front.indices, front.count, 0, 1, maxOf(size));
  }
  llvm::SmallVector<Value> coordinates;
  for (int64_t d = 0; d < rank; ++d) {
    coordinates.push_back(n.reshapeTo(coordinateOf(n, front.indices, shape, d), {Dim(1), count}));
  }
  setSelected(n, 0, rank == 1 ? coordinates.front() : n.create<ConcatOp>(coordinates, 0), 1, front.count);
}

void compress(NodeImporter &n) {
  Value x = n.input(0), condition = n.input(1);
  if (n.failed() || !requireSizes(n, {x, condition})) {
    return;
  }
  if (!NodeImporter::elementType(condition).isInteger(1) || NodeImporter::rank(condition) != 1) {
    n.fail("its condition is not a boolean vector");
    return;
  }
  bool flat = !n.hasAttr("axis");
  x = flat ? n.reshapeTo(x, {countElements(x)}) : x;
  int64_t axis = flat ? 0 : n.normalizeAxis(n.intAttr("axis", 0), NodeImporter::rank(x));
  if (n.failed()) {
    return;
  }
  // The condition may be shorter than the axis. If it is longer, the additional entries are ignored.
  Dim length = NodeImporter::sizes(condition)[0], used = min(NodeImporter::sizes(x)[axis], length);
  condition = sameSize(used, length) ? condition : n.slice(condition, {Dim(0)}, {used}, {1});
  int64_t size = maxOf(used);
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
  cutToCount(n, front.indices, front.count, 0, axis, size);
  setSelected(n, 0, n.create<GatherOp>(x, front.indices, axis), axis, front.count);
}

//===----------------------------------------------------------------------===//
// Unique
//===----------------------------------------------------------------------===//

Value gather(NodeImporter &n, Value x, Value indices) { return n.create<GatherOp>(x, indices, 0); }

/// Returns the order that sorts the |rows| [count, keys] by the first key, then the second, and so on. It is stable.
Value sortRows(NodeImporter &n, Value rows) {
  Dim count = NodeImporter::sizes(rows)[0];
  int64_t keys = NodeImporter::dim(rows, 1);
  Value order;
  for (int64_t key = keys - 1; key >= 0; --key) {
    Value column = n.reshapeTo(n.slice(rows, {Dim(0), Dim(key)}, {count, Dim(1)}, {1, 1}), {count});
    column = order ? gather(n, column, order) : column;
    Value next = n.createMulti<TopKOp>(2, column, count.isKnown() ? count.value() : -1, 0, false)[1];
    order = order ? gather(n, order, next) : next;
  }
  return order;
}

/// Returns the order of sortRows() by comparing all pairs of rows, for any number of keys.
Value sortRowsByPairs(NodeImporter &n, Value rows) {
  Arithmetic i{n};
  Dim count = NodeImporter::sizes(rows)[0], keys = NodeImporter::sizes(rows)[1];
  mlir::Type i64 = n.b.getI64Type();
  Value all = n.expandTo(n.reshapeTo(rows, {count, Dim(1), keys}), {count, count, keys});
  Value others = n.expandTo(n.reshapeTo(rows, {Dim(1), count, keys}), {count, count, keys});
  // The first key that differs decides.
  Value differs = n.cast(n.create<CompareOp>(all, others, CompareKind::ne), i64);
  Value key = n.create<ArgReduceOp>(differs, 2, /*min=*/false, /*keepDims=*/true, /*selectLast=*/false);
  auto atKey = [&](Value values) { return n.reshapeTo(n.create<GatherElementsOp>(values, key, 2), {count, count}); };
  Value own = atKey(all), other = atKey(others);
  Value numbers = iotaTo(n, count),
        isEarlier = i.is(n.reshapeTo(numbers, {Dim(1), count}), CompareKind::lt, n.reshapeTo(numbers, {count, Dim(1)}));
  Value isEqual = n.create<AndOp>(i.is(other, CompareKind::eq, own), isEarlier);
  Value isBefore = n.create<OrOp>(i.is(other, CompareKind::lt, own), isEqual);
  Value places = n.create<ReduceOp>(n.cast(isBefore, i64), ReduceKind::sum, Ints{1}, false);
  return scatter(n, count, places, numbers);
}

/// Returns whether each row of the sorted |rows| differs from the previous row.
Value startsGroup(NodeImporter &n, Value rows) {
  Dim count = NodeImporter::sizes(rows)[0], keys = NodeImporter::sizes(rows)[1];
  Value first = n.intVector({1});
  if (count.is(1)) {
    return first;
  }
  Value before = n.slice(rows, {Dim(0), Dim(0)}, {count - 1, keys}, {1, 1});
  Value after = n.slice(rows, {Dim(1), Dim(0)}, {count - 1, keys}, {1, 1});
  Value differs = widen(n, n.create<CompareOp>(before, after, CompareKind::ne));
  Value any = n.create<ReduceOp>(differs, ReduceKind::max, Ints{1}, false);
  return n.create<ConcatOp>(mlir::ValueRange{first, any}, 0);
}

void unique(NodeImporter &n) {
  Value x = n.input(0);
  if (n.failed() || !requireSizes(n, {x})) {
    return;
  }
  bool flat = !n.hasAttr("axis");
  x = flat ? n.reshapeTo(x, {countElements(x)}) : x;
  int64_t rank = NodeImporter::rank(x), axis = flat ? 0 : n.normalizeAxis(n.intAttr("axis", 0), rank);
  auto shape = NodeImporter::sizes(x);
  Dim count = n.failed() ? Dim(1) : shape[axis], keys = 1;
  for (auto [d, size] : llvm::enumerate(shape)) {
    keys *= int64_t(d) == axis ? Dim(1) : size;
  }
  bool hasFewKeys = keys.isKnown() && keys.value() <= kMostKeys;
  if (!n.failed() && !hasFewKeys && maxOf(count * count * keys) > kMostElements) {
    n.unsupported(
        llvm::formatv("{0} slices of {1} elements are compared; up to {2} elements in all pairs are supported",
                      toText(count), toText(keys), kMostElements));
  }
  if (!n.failed() && minOf(count * keys) < 1) {
    n.unsupported(llvm::formatv("its {0} slices of {1} elements may be empty: give the dims ranges from 1 with --dims",
                                toText(count), toText(keys)));
  }
  if (n.failed()) {
    return;
  }
  Ints perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  std::rotate(perm.begin(), perm.begin() + axis, perm.begin() + axis + 1);
  Value rows = n.reshapeTo(n.transpose(x, perm), {count, keys});
  rows = NodeImporter::elementType(rows).isInteger(1) ? n.cast(rows, n.b.getI32Type()) : rows;
  // Groups of equal rows are numbered in sorted order. The sort is stable, so a group begins with its first row.
  Value order = hasFewKeys ? sortRows(n, rows) : sortRowsByPairs(n, rows),
        starts = startsGroup(n, gather(n, rows, order));
  Value group = ranks(n, starts), groups = sum(n, starts);
  int64_t most = maxOf(count);
  Value end = n.scalar(n.b.getI64Type(), static_cast<double>(most));
  Value isStart = n.cast(starts, n.b.getI1Type());
  Value first = sliceFront(n, scatter(n, most + 1, n.create<WhereOp>(isStart, group, end), order), 0, most);
  Value inverse = scatter(n, count, order, group);
  Value ones = n.expandTo(n.intVector({1}), {count});
  Value sizes = scatter(n, most, group, ones, ScatterReduction::add);
  if (n.intAttr("sorted", 1) == 0) {
    // Number the groups by their first rows instead. Entries that are not a group come last.
    Value real = n.create<CompareOp>(iota(n, most), groups, CompareKind::lt);
    Value moved = n.createMulti<TopKOp>(2, n.create<WhereOp>(real, first, end), most, 0, false)[1];
    first = gather(n, first, moved);
    sizes = gather(n, sizes, moved);
    inverse = gather(n, scatter(n, most, moved, iota(n, most)), inverse);
  }
  if (Dim real = cutToCount(n, first, groups, 0, axis, most); real.isSymbolic()) {
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
