//===- RunTimeShapes.cpp - Ops whose sizes or axes a run computes ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/RunTimeShapes.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/Import/Onnx/GraphImporter.h"
#include "top_dialect/Import/Onnx/OnnxModel.h"
#include "top_dialect/Import/Onnx/ShapeArithmetic.h"

#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

/// Arithmetic on vectors of i64, which broadcast.
struct Arithmetic {
  NodeImporter &n;

  Value number(int64_t value) { return n.intVector({value}); }
  Value add(Value a, Value b) { return n.create<AddOp>(a, b); }
  Value sub(Value a, Value b) { return n.create<SubOp>(a, b); }
  Value mul(Value a, Value b) { return n.create<MulOp>(a, b); }
  Value div(Value a, Value b) { return n.create<DivOp>(a, b); }
  Value min(Value a, Value b) { return n.create<MinOp>(a, b); }
  Value max(Value a, Value b) { return n.create<MaxOp>(a, b); }
  Value is(Value a, CompareKind kind, Value b) { return n.create<CompareOp>(a, b, kind); }
  Value where(Value flag, Value a, Value b) { return n.create<WhereOp>(flag, a, b); }
  Value reduce(Value a, ReduceKind kind) { return n.create<ReduceOp>(a, kind, Ints{0}, true); }
  /// Returns the quotient of a number and a positive number, rounded down.
  Value floorDiv(Value a, Value b) {
    Value least = add(sub(a, b), number(1)); // div rounds towards zero
    return where(is(a, CompareKind::lt, number(0)), div(least, b), div(a, b));
  }
  /// Counts negative entries from |size| on.
  Value fromEnd(Value a, Value size) { return where(is(a, CompareKind::lt, number(0)), add(a, size), a); }
  Value at(Value vector, int64_t i) { return n.slice(vector, {Dim(i)}, {Dim(1)}, {1}); }
};

int64_t countOf(Value vector) { return NodeImporter::dim(vector, 0); }

/// Returns the static sizes of |x|; its sizes must be numbers.
std::optional<Ints> staticSizes(NodeImporter &n, Value x) {
  if (!Shape(x).isKnown()) {
    n.unsupported("its input has open dims, and its shape arguments are computed at run time: fix the dims with "
                  "--input_shapes");
  }
  return n.failed() ? std::nullopt : std::optional(Ints(NodeImporter::shape(x)));
}

/// Makes the run fail unless the single element of |value| is |wanted|: binds a symbol that can be 0 or 1 to 0 or 2.
void require(NodeImporter &n, Value value, int64_t wanted, llvm::StringRef what) {
  Arithmetic i{n};
  Value error = i.where(i.is(value, CompareKind::eq, i.number(wanted)), i.number(0), i.number(2));
  if (!n.failed() && !isConstant(error)) {
    std::string name = llvm::formatv("{0} of {1}", what, nodeName(n.node));
    BindOp::create(n.b, n.loc, error, 0, SizeSymbolAttr::get(n.b.getContext(), name, 0, 1, 1));
  }
}

/// Returns a symbol for each element of |sizes|, the dims of output |output|.
llvm::SmallVector<Dim> bindDims(NodeImporter &n, Value sizes, llvm::ArrayRef<int64_t> most, unsigned output = 0) {
  llvm::SmallVector<Dim> dims;
  for (size_t d = 0; d < most.size() && !n.failed(); ++d) {
    auto known = getConstantInts(sizes);
    std::string name = llvm::formatv("{0}.{1}", n.graph.nameOf(n.node.output(int(output))), d);
    DimRange range{0, most[d], 1, most[d]};
    dims.push_back(known ? Dim((*known)[d])
                         : n.graph.model.state->runTimeSizes.bind(n.b, n.loc, {sizes, int64_t(d)}, name, range));
  }
  dims.resize(most.size(), Dim(1));
  return dims;
}

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

/// Returns axes from 0 to |rank| - 1 for a vector of axes that may be negative.
Value normalAxes(NodeImporter &n, Value axes, int64_t rank) { return Arithmetic{n}.fromEnd(axes, n.intVector({rank})); }

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

/// Returns elements start, start + step, ... of |x| along |axis|.
Value gatherFrom(NodeImporter &n, Value x, int64_t axis, Value start, Value step, Dim size) {
  Arithmetic i{n};
  Value indices = iotaTo(n, size);
  indices = step ? i.mul(indices, step) : indices;
  return n.create<GatherOp>(x, i.add(indices, start), axis);
}

/// Replaces the entries of |base| at |axes| by |values|; without axes, those from the front.
Value spread(NodeImporter &n, Value base, Value axes, Value values) {
  Value places = axes ? normalAxes(n, axes, countOf(base)) : iotaTo(n, countOf(values));
  return n.create<ScatterElementsOp>(base, places, values, 0, ScatterReduction::none);
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

Value iotaTo(NodeImporter &n, Dim size) {
  Ints numbers(std::max<int64_t>(maxOf(size), 0));
  std::iota(numbers.begin(), numbers.end(), 0);
  Value all = n.intVector(numbers);
  return size.isKnown() ? all : n.slice(all, {Dim(0)}, {size}, {1});
}

Value vectorInput(NodeImporter &n, unsigned i) {
  Value value = n.input(i);
  return n.failed() ? value : n.cast(n.reshape(value, {knownNumElements(value).value_or(1)}), n.b.getI64Type());
}

Value reduceRunTimeAxes(NodeImporter &n, Value x, llvm::function_ref<Value(Value, int64_t)> reduce) {
  auto shape = staticSizes(n, x);
  if (!shape || llvm::is_contained(*shape, 0)) {
    n.unsupported("it reduces axes that are computed at run time and has no elements");
    return x;
  }
  Arithmetic i{n};
  auto rank = static_cast<int64_t>(shape->size());
  Value axes = vectorInput(n, 1), flags = axisFlags(n, axes, rank);
  // A reduced dim keeps its size, with the same element everywhere, until the end.
  for (int64_t d = 0; d < rank; ++d) {
    Value flag = n.cast(n.reshape(i.at(flags, d), {}), n.b.getI1Type());
    x = i.where(flag, reduce(x, d), x);
  }
  Value ones = n.intVector(Ints(rank, 1));
  Value sizes = i.where(n.cast(flags, n.b.getI1Type()), ones, n.intVector(*shape));
  llvm::SmallVector<Dim> dims = bindDims(n, sizes, *shape);
  Value y = n.slice(x, llvm::SmallVector<Dim>(rank, Dim(0)), dims, Ints(rank, 1));
  if (n.intAttr("keepdims", 1) != 0 || n.failed()) {
    return y;
  }
  int64_t remaining = rank - countOf(axes);
  Value left = remaining > 0 ? withoutFlagged(n, n.intVector(*shape), flags, remaining) : n.intVector({});
  Value count = i.reduce(sizes, ReduceKind::prod);
  if (remaining <= 0) {
    return n.reshape(n.slice(n.reshapeTo(y, {product(dims)}), {Dim(0)}, {Dim(1)}, {1}), {});
  }
  return reshapeToValues(n, y, left, Ints(remaining, *llvm::max_element(*shape)), count);
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

void reshapeRunTime(NodeImporter &n) {
  Value x = n.input(0);
  auto shape = staticSizes(n, x);
  if (!shape) {
    return;
  }
  Arithmetic i{n};
  Value sizes = vectorInput(n, 1);
  int64_t rank = countOf(sizes), total = mlir::ShapedType::getNumElements(*shape);
  if (n.intAttr("allowzero", 0) == 0) {
    Ints own(*shape);
    own.resize(rank, 0);
    sizes = i.where(i.is(sizes, CompareKind::eq, i.number(0)), n.intVector(own), sizes);
  }
  Value isRest = i.is(sizes, CompareKind::eq, i.number(-1));
  Value others = i.reduce(i.where(isRest, i.number(1), sizes), ReduceKind::prod);
  sizes = i.where(isRest, i.div(i.number(total), i.max(others, i.number(1))), sizes);
  n.setOutput(0, reshapeToValues(n, x, sizes, Ints(rank, total > 0 ? total : 64), i.number(total)));
}

void squeezeRunTime(NodeImporter &n) {
  Value x = n.input(0);
  auto shape = staticSizes(n, x);
  if (!shape) {
    return;
  }
  Value axes = vectorInput(n, 1), flags = axisFlags(n, axes, int64_t(shape->size()));
  int64_t remaining = int64_t(shape->size()) - countOf(axes);
  if (remaining < 1) {
    n.setOutput(0, n.reshape(x, {}));
    return;
  }
  Value left = withoutFlagged(n, n.intVector(*shape), flags, remaining);
  n.setOutput(0, reshapeToValues(n, x, left, Ints(remaining, *llvm::max_element(*shape)),
                                 n.intVector({mlir::ShapedType::getNumElements(*shape)})));
}

void unsqueezeRunTime(NodeImporter &n) {
  Value x = n.input(0);
  auto shape = staticSizes(n, x);
  if (!shape) {
    return;
  }
  Arithmetic i{n};
  Value axes = vectorInput(n, 1);
  int64_t rank = int64_t(shape->size()) + countOf(axes), most = 1;
  for (int64_t size : *shape) {
    most = std::max(most, size);
  }
  Value flags = axisFlags(n, axes, rank), others = i.sub(i.number(1), flags);
  Ints own(*shape);
  own.push_back(1); // for a scalar
  Value places = i.max(i.sub(n.create<CumSumOp>(others, 0, false, false), i.number(1)), i.number(0));
  Value sizes = i.where(n.cast(flags, n.b.getI1Type()), i.number(1), n.create<GatherOp>(n.intVector(own), places, 0));
  n.setOutput(0,
              reshapeToValues(n, x, sizes, Ints(rank, most), n.intVector({mlir::ShapedType::getNumElements(*shape)})));
}

void sliceRunTime(NodeImporter &n) {
  Value x = n.input(0);
  auto shape = staticSizes(n, x);
  if (!shape) {
    return;
  }
  Arithmetic i{n};
  auto rank = static_cast<int64_t>(shape->size());
  Value dims = n.intVector(*shape), zero = i.number(0), axes = n.hasInput(3) ? vectorInput(n, 3) : Value();
  Value steps =
      n.hasInput(4) ? spread(n, n.intVector(Ints(rank, 1)), axes, vectorInput(n, 4)) : n.intVector(Ints(rank, 1));
  Value starts = spread(n, n.intVector(Ints(rank, 0)), axes, vectorInput(n, 1));
  Value ends = spread(n, dims, axes, vectorInput(n, 2));
  Value isForward = i.is(steps, CompareKind::gt, zero), last = i.sub(dims, i.number(1));
  starts = i.max(i.fromEnd(starts, dims), zero), starts = i.min(starts, i.where(isForward, dims, last));
  ends = i.min(i.fromEnd(ends, dims), dims), ends = i.max(ends, i.where(isForward, zero, i.number(-1)));
  // A step beyond the dim would overflow and takes one element, as the size of the dim does.
  Value far = i.max(dims, i.number(1));
  steps = i.max(i.min(steps, far), i.sub(zero, far));
  Value length = i.where(isForward, i.sub(ends, starts), i.sub(starts, ends));
  Value width = i.max(i.where(isForward, steps, i.sub(zero, steps)), i.number(1));
  Value sizes = i.div(i.add(i.max(length, zero), i.sub(width, i.number(1))), width);
  llvm::SmallVector<Dim> result = bindDims(n, sizes, *shape);
  for (int64_t d = 0; d < rank && !n.failed(); ++d) {
    x = gatherFrom(n, x, d, i.at(starts, d), i.at(steps, d), result[d]);
  }
  n.setOutput(0, x);
}

void splitRunTime(NodeImporter &n, int64_t axis) {
  Value x = n.input(0);
  auto shape = staticSizes(n, x);
  if (!shape) {
    return;
  }
  Arithmetic i{n};
  Value sizes = vectorInput(n, 1), starts = n.create<CumSumOp>(sizes, 0, true, false);
  if (countOf(sizes) != int64_t(n.numOutputs())) {
    n.fail(llvm::formatv("{0} sizes for {1} outputs", countOf(sizes), n.numOutputs()));
    return;
  }
  require(n, i.reduce(sizes, ReduceKind::sum), (*shape)[axis], "sum of sizes");
  for (unsigned part = 0; part < n.numOutputs() && !n.failed(); ++part) {
    std::string name = llvm::formatv("{0}.{1}", n.graph.nameOf(n.node.output(int(part))), axis);
    DimRange range{0, (*shape)[axis], 1, (*shape)[axis]};
    Dim size = n.graph.model.state->runTimeSizes.bind(n.b, n.loc, {sizes, int64_t(part)}, name, range);
    n.setOutput(part, gatherFrom(n, x, axis, i.at(starts, part), Value(), size));
  }
}

/// Returns the element of a dim of |size| elements that each of |positions| outside of it reads in |mode|.
static Value sourceOfPad(NodeImporter &n, llvm::StringRef mode, Value positions, int64_t size) {
  Arithmetic i{n};
  Value last = i.number(size - 1);
  if (mode == "wrap") {
    Value width = i.number(size);
    return i.sub(positions, i.mul(i.floorDiv(positions, width), width));
  }
  if (mode == "reflect" && size > 1) {
    Value period = i.number(2 * (size - 1));
    Value within = i.sub(positions, i.mul(i.floorDiv(positions, period), period));
    return i.min(within, i.sub(period, within));
  }
  return i.min(i.max(positions, i.number(0)), last);
}

void padRunTime(NodeImporter &n) {
  Value x = n.input(0);
  auto shape = staticSizes(n, x);
  if (!shape || llvm::is_contained(*shape, 0)) {
    n.unsupported("its pads are computed at run time and its input has no elements");
    return;
  }
  Arithmetic i{n};
  auto rank = static_cast<int64_t>(shape->size());
  std::string mode = n.stringAttr("mode", "constant");
  Value given = vectorInput(n, 1), axes = n.hasInput(3) ? vectorInput(n, 3) : Value();
  int64_t count = countOf(given) / 2;
  auto half = [&](int64_t first) { return n.slice(given, {Dim(first)}, {Dim(count)}, {1}); };
  Value none = n.intVector(Ints(rank, 0));
  Value begins = spread(n, none, axes, half(0)), ends = spread(n, none, axes, half(count));
  Ints most;
  for (int64_t size : *shape) {
    most.push_back(2 * size + 8);
  }
  Value sizes = i.max(i.add(n.intVector(*shape), i.add(begins, ends)), i.number(0));
  llvm::SmallVector<Dim> dims = bindDims(n, sizes, most);
  Value value = n.hasInput(2) ? n.reshape(n.cast(n.input(2), NodeImporter::elementType(x)), {}) : n.scalarLike(x, 0);
  for (int64_t d = 0; d < rank && !n.failed(); ++d) {
    Value positions = i.sub(iotaTo(n, dims[d]), i.at(begins, d));
    x = n.create<GatherOp>(x, sourceOfPad(n, mode, positions, (*shape)[d]), d);
    if (mode == "constant") {
      Value isInside = n.create<AndOp>(i.is(positions, CompareKind::ge, i.number(0)),
                                       i.is(positions, CompareKind::lt, i.number((*shape)[d])));
      llvm::SmallVector<Dim> aligned(rank - d, Dim(1));
      aligned.front() = dims[d];
      x = i.where(n.reshapeTo(isInside, aligned), x, value);
    }
  }
  n.setOutput(0, x);
}

void tileRunTime(NodeImporter &n) {
  Value x = n.input(0);
  auto shape = staticSizes(n, x);
  auto repeats = shape ? n.bindSizes(n.input(1), 16) : std::nullopt;
  if (!repeats || repeats->size() != shape->size()) {
    n.fail("the number of repeats is not the rank of its input");
    return;
  }
  Arithmetic i{n};
  for (auto [d, size] : llvm::enumerate(*shape)) {
    Value positions = iotaTo(n, Dim(size) * (*repeats)[d]), width = i.number(std::max<int64_t>(size, 1));
    x = n.create<GatherOp>(x, i.sub(positions, i.mul(i.div(positions, width), width)), int64_t(d));
  }
  n.setOutput(0, x);
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
  Value diagonal = i.add(rows, vectorInput(n, 1));
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
