//===- RunTimeShapes.cpp - Ops whose sizes or axes a run computes ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Shapes/RunTimeShapes.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/Import/Onnx/GraphImporter.h"
#include "top_dialect/Import/Onnx/Model/OnnxModel.h"
#include "top_dialect/Import/Onnx/Sizes/IndexArithmetic.h"
#include "top_dialect/Import/Onnx/Sizes/ShapeArithmetic.h"

#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

Dim product(llvm::ArrayRef<Dim> dims) {
  return std::accumulate(dims.begin(), dims.end(), Dim(1), [](Dim a, Dim b) { return a * b; });
}

/// Reshapes |x| to |sizes|, a vector of i64 with entries up to |most|. The element counts are compared at run time.
Value reshapeToValues(NodeImporter &n, Value x, Value sizes, llvm::ArrayRef<int64_t> most, Value count) {
  Arithmetic i{n};
  llvm::SmallVector<Dim> dims = bindDims(n, sizes, most);
  Dim to = product(dims), from = countElements(x);
  require(n, i.sub(i.reduce(sizes, ReduceKind::prod), count), 0, "difference of element counts");
  constexpr int64_t kMost = int64_t(1) << 28;
  if (n.failed() || to.isUnknown() || maxOf(to) > kMost) {
    n.unsupported(llvm::formatv("its result may have up to {0} elements: give smaller ranges for its dims with --dims",
                                to.isUnknown() ? INT64_MAX : maxOf(to)));
    return x;
  }
  // Sizes whose product is not known to be that of x: the elements of x come first in a longer vector.
  Value zeros = n.expandTo(n.reshape(n.scalarLike(x, 0), {1}), {Dim(maxOf(to))});
  Value flat = n.create<ConcatOp>(mlir::ValueRange{n.reshapeTo(x, {from}), zeros}, 0);
  return n.reshapeTo(n.slice(flat, {Dim(0)}, {to}, {1}), dims);
}

/// Returns a vector of |rank| flags (i64) that is 1 at |axes|. The axes must be distinct.
Value axisFlags(NodeImporter &n, Value axes, int64_t rank) {
  Arithmetic i{n};
  Value column = n.reshape(normalAxes(n, axes, rank), {countOf(axes), 1});
  Value equal = n.cast(i.is(column, CompareKind::eq, n.reshape(iotaTo(n, rank), {1, rank})), n.b.getI64Type());
  Value flags = n.create<ReduceOp>(equal, ReduceKind::max, Ints{0}, false);
  require(n, i.reduce(flags, ReduceKind::sum), countOf(axes), "distinct axes");
  return flags;
}

/// Returns the entries of |values| whose flag is 0, in order.
Value withoutFlagged(NodeImporter &n, Value values, Value flags, int64_t remaining) {
  Arithmetic i{n};
  int64_t rank = countOf(flags);
  Value keys = i.add(i.mul(flags, i.number(rank)), iotaTo(n, rank));
  Value order = n.createMulti<TopKOp>(2, keys, remaining, 0, false)[1];
  return n.create<GatherOp>(values, order, 0);
}

} // namespace

bool isRunTime(NodeImporter &n, unsigned i) {
  if (!n.hasInput(i) || !n.bindsSizes()) {
    return false;
  }
  Value value = n.input(i);
  auto sizes = n.failed() ? std::nullopt : readSizes(value);
  bool isRead = sizes && llvm::none_of(*sizes, [](Dim size) { return size.isUnknown(); });
  return !n.failed() && !isConstant(value) && !isRead && NodeImporter::rank(value) <= 1 &&
         knownNumElements(value).value_or(0) > 0;
}

Value reduceRunTimeAxes(NodeImporter &n, Value x, llvm::function_ref<Value(Value, int64_t)> reduce) {
  auto most = largestSizes(n, x);
  if (!most) {
    return x;
  }
  Arithmetic i{n};
  auto rank = static_cast<int64_t>(most->size());
  Value shape = shapeVector(n, x);
  Value axes = vectorInput(n, 1), flags = axisFlags(n, axes, rank);
  // A reduced dim keeps its size, with the same element everywhere, until the end. An empty one gets one element.
  for (int64_t d = 0; d < rank && !n.failed(); ++d) {
    Dim size = NodeImporter::sizes(x)[d];
    if (minOf(size) < 1 && !size.is(0)) {
      n.unsupported(llvm::formatv("it reduces axes that are computed at run time, and dim {0} may be empty: give it a "
                                  "range from 1 with --dims",
                                  d));
    }
    Value flag = n.cast(n.reshape(i.at(flags, d), {}), n.b.getI1Type()), reduced = reduce(x, d);
    x = i.where(flag, reduced, size.is(0) ? n.scalarLike(x, 0) : x);
    (*most)[d] = std::max<int64_t>((*most)[d], 1);
  }
  Value sizes = i.where(n.cast(flags, n.b.getI1Type()), n.intVector(Ints(rank, 1)), shape);
  llvm::SmallVector<Dim> dims = bindDims(n, sizes, *most);
  Value y = x;
  for (int64_t d = 0; d < rank; ++d) {
    y = takeFront(n, y, d, dims[d]);
  }
  if (n.intAttr("keepdims", 1) != 0 || n.failed()) {
    return y;
  }
  int64_t remaining = rank - countOf(axes);
  Value left = remaining > 0 ? withoutFlagged(n, shape, flags, remaining) : n.intVector({});
  Value count = i.reduce(sizes, ReduceKind::prod);
  if (remaining <= 0) {
    return n.reshape(n.slice(n.reshapeTo(y, {product(dims)}), {Dim(0)}, {Dim(1)}, {1}), {});
  }
  return reshapeToValues(n, y, left, Ints(remaining, *llvm::max_element(*most)), count);
}

Value applyAlongRunTimeAxis(NodeImporter &n, Value x, llvm::function_ref<Value(Value, int64_t)> apply) {
  Arithmetic i{n};
  int64_t rank = NodeImporter::rank(x);
  Value axis = normalAxes(n, vectorInput(n, 1), rank), y = x;
  for (int64_t d = 0; d < rank; ++d) {
    Value flag = n.reshape(i.is(axis, CompareKind::eq, i.number(d)), {});
    y = i.where(flag, apply(x, d), y);
  }
  return y;
}

/// Returns the number of elements of |x| as a vector of one i64.
static Value elementCount(NodeImporter &n, Value x) {
  return NodeImporter::rank(x) == 0 ? n.intVector({1}) : Arithmetic{n}.reduce(shapeVector(n, x), ReduceKind::prod);
}

void reshapeRunTime(NodeImporter &n) {
  Value x = n.input(0);
  auto most = largestSizes(n, x);
  if (!most) {
    return;
  }
  Arithmetic i{n};
  Value sizes = vectorInput(n, 1), total = elementCount(n, x);
  int64_t rank = countOf(sizes), largest = mlir::ShapedType::getNumElements(*most), own = int64_t(most->size());
  if (n.intAttr("allowzero", 0) == 0) {
    Value copied = n.intVector(Ints(std::max(rank - own, int64_t(0)), 0));
    if (own > 0) {
      Value front = n.create<ShapeOp>(x, 0, std::min(own, rank));
      copied = rank > own ? n.create<ConcatOp>(mlir::ValueRange{front, copied}, 0) : front;
    }
    sizes = i.where(i.is(sizes, CompareKind::eq, i.number(0)), copied, sizes);
  }
  Value isRest = i.is(sizes, CompareKind::eq, i.number(-1));
  Value others = i.reduce(i.where(isRest, i.number(1), sizes), ReduceKind::prod);
  sizes = i.where(isRest, i.div(total, i.max(others, i.number(1))), sizes);
  n.setOutput(0, reshapeToValues(n, x, sizes, Ints(rank, largest > 0 ? largest : 64), total));
}

void squeezeRunTime(NodeImporter &n) {
  Value x = n.input(0);
  auto most = largestSizes(n, x);
  if (!most) {
    return;
  }
  auto rank = int64_t(most->size());
  Value axes = vectorInput(n, 1), flags = axisFlags(n, axes, rank);
  int64_t remaining = rank - countOf(axes);
  if (remaining < 1) {
    n.setOutput(0, n.reshape(x, {}));
    return;
  }
  Value left = withoutFlagged(n, shapeVector(n, x), flags, remaining);
  n.setOutput(0, reshapeToValues(n, x, left, Ints(remaining, *llvm::max_element(*most)), elementCount(n, x)));
}

void unsqueezeRunTime(NodeImporter &n) {
  Value x = n.input(0);
  auto most = largestSizes(n, x);
  if (!most) {
    return;
  }
  Arithmetic i{n};
  Value axes = vectorInput(n, 1), own = n.intVector({1}); // for a scalar
  int64_t rank = int64_t(most->size()) + countOf(axes), largest = 1;
  for (int64_t size : *most) {
    largest = std::max(largest, size);
  }
  Value flags = axisFlags(n, axes, rank), others = i.sub(i.number(1), flags);
  own = most->empty() ? own : n.create<ConcatOp>(mlir::ValueRange{shapeVector(n, x), own}, 0);
  Value places = i.max(i.sub(n.create<CumSumOp>(others, 0, false, false), i.number(1)), i.number(0));
  Value sizes = i.where(n.cast(flags, n.b.getI1Type()), i.number(1), n.create<GatherOp>(own, places, 0));
  n.setOutput(0, reshapeToValues(n, x, sizes, Ints(rank, largest), elementCount(n, x)));
}

Value expandRunTime(NodeImporter &n, Value x, llvm::SmallVector<Dim> sizes) {
  Arithmetic i{n};
  auto own = NodeImporter::sizes(x);
  Value target = vectorInput(n, 1);
  for (size_t k = 0; k < std::min(own.size(), sizes.size()); ++k) {
    Dim from = own[own.size() - 1 - k], &to = sizes[sizes.size() - 1 - k];
    if (!to.isSymbolic() || from.is(1) || !from.isKnown()) {
      continue;
    }
    Value wanted = i.at(target, int64_t(sizes.size() - 1 - k));
    Value error = i.mul(i.sub(wanted, i.number(1)), i.sub(wanted, i.number(from.value())));
    require(n, error, 0, "difference of sizes");
    to = from;
  }
  return n.expandTo(x, sizes);
}

void rangeRunTime(NodeImporter &n) {
  Value start = n.input(0), limit = n.input(1), delta = n.input(2);
  if (n.failed()) {
    return;
  }
  mlir::Type element = NodeImporter::elementType(start);
  bool isFloat = mlir::isa<mlir::FloatType>(element);
  mlir::Type f64 = n.b.getF64Type(), i64 = n.b.getI64Type();
  Value distance = n.create<SubOp>(n.cast(limit, f64), n.cast(start, f64));
  Value steps = n.create<CeilOp>(n.create<DivOp>(distance, n.cast(delta, f64)));
  Value count = n.create<MaxOp>(n.cast(steps, i64), n.scalar(i64, 0));
  constexpr int64_t kMost = 1 << 16;
  Dim size = n.bindCount(count, 0, 0, kMost);
  mlir::Type compute = isFloat ? element : i64;
  Value numbers = n.cast(iotaTo(n, size), compute);
  Value y = n.create<AddOp>(n.create<MulOp>(numbers, n.cast(delta, compute)), n.cast(start, compute));
  n.setOutput(0, n.cast(y, element));
}

void triluRunTime(NodeImporter &n) {
  Value x = n.input(0);
  int64_t rank = NodeImporter::rank(x);
  if (n.failed() || rank < 2) {
    n.fail("its input has no matrices");
    return;
  }
  Arithmetic i{n};
  auto sizes = NodeImporter::sizes(x);
  Value rows = n.reshapeTo(iotaTo(n, sizes[rank - 2]), {sizes[rank - 2], Dim(1)}), columns = iotaTo(n, sizes[rank - 1]);
  Value diagonal = n.hasInput(1) ? i.add(rows, vectorInput(n, 1)) : rows;
  bool isUpper = n.intAttr("upper", 1) != 0;
  Value stays = i.is(columns, isUpper ? CompareKind::ge : CompareKind::le, diagonal);
  n.setOutput(0, i.where(stays, x, n.scalarLike(x, 0)));
}

void oneHotRunTime(NodeImporter &n, int64_t axis) {
  Arithmetic i{n};
  Value indices = n.cast(n.input(0), n.b.getI64Type()), depth = vectorInput(n, 1), values = n.input(2);
  auto sizes = NodeImporter::sizes(indices);
  constexpr int64_t kMost = 4096;
  Dim count = n.bindCount(depth, 0, axis, kMost);
  indices = i.fromEnd(indices, n.reshape(depth, {}));
  llvm::SmallVector<Dim> aligned(sizes.size() - size_t(axis) + 1, Dim(1));
  aligned.front() = count;
  sizes.insert(sizes.begin() + axis, Dim(1));
  Value isHot = i.is(n.reshapeTo(indices, sizes), CompareKind::eq, n.reshapeTo(iotaTo(n, count), aligned));
  auto value = [&](int64_t at) { return n.reshape(n.slice(values, {Dim(at)}, {Dim(1)}, {1}), {}); };
  n.setOutput(0, i.where(isHot, value(1), value(0)));
}

} // namespace tessera::top::onnx_import
