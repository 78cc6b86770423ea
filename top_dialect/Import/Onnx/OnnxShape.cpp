//===- OnnxShape.cpp - Handlers of constants, reshapes and moves ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/Import/Onnx/IndexArithmetic.h"
#include "top_dialect/Import/Onnx/NodeImporter.h"
#include "top_dialect/Import/Onnx/RunTimeShapes.h"
#include "top_dialect/Import/Onnx/ShapeArithmetic.h"
#include "top_dialect/Import/Onnx/SizeValues.h"
#include "top_dialect/Import/Onnx/StorageTypes.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

//--- constants ---

void constantNode(NodeImporter &n) {
  using A = onnx::AttributeProto;
  mlir::Type f32 = n.b.getF32Type();
  if (auto *attribute = n.typedAttr("value", A::TENSOR)) {
    n.setOutputStorage(0, findStorageType(attribute->t().data_type()));
    n.setOutput(0, n.constant(attribute->t(), nodeName(n.node)));
  } else if (n.hasAttr("value_float")) {
    n.setOutput(0, n.scalar(f32, n.floatAttr("value_float", 0)));
  } else if (n.hasAttr("value_int")) {
    Value vector = n.intVector({n.intAttr("value_int", 0)});
    n.setOutput(0, n.reshape(vector, {}));
  } else if (n.hasAttr("value_floats")) {
    auto values = n.floatsAttr("value_floats");
    n.setOutput(0, n.floatConstant(f32, {static_cast<int64_t>(values.size())}, values));
  } else if (n.hasAttr("value_ints")) {
    n.setOutput(0, n.intVector(n.intsAttr("value_ints")));
  } else {
    n.unsupported("it has none of the attributes value, value_float, value_floats, value_int, value_ints; strings and "
                  "sparse tensors are "
                  "not supported");
  }
}

void constantOfShape(NodeImporter &n) {
  Value shape = n.input(0);
  Value value = n.scalar(n.b.getF32Type(), 0.0);
  if (auto *attribute = n.typedAttr("value", onnx::AttributeProto::TENSOR)) {
    value = n.constant(attribute->t(), nodeName(n.node));
  }
  if (auto *attribute = n.findAttr("value")) {
    n.setOutputStorage(0, findStorageType(attribute->t().data_type()));
  }
  auto data = getConstantData(value);
  if (n.failed() || !data || data->type.getNumElements() != 1) {
    n.fail("attribute 'value' does not hold one element");
    return;
  }
  auto splat = mlir::DenseElementsAttr::getFromRawBuffer(data->type, data->bytes);
  if (data->type.getElementType().isInteger(1)) {
    splat = mlir::DenseElementsAttr::get(data->type, data->bytes[0] != 0);
  }
  auto sizes = isRunTime(n, 0) ? std::optional(n.sizesInput(0, "the shape")) : n.openSizes(shape);
  if (sizes) {
    n.setOutput(0, n.expandTo(n.reshape(value, {}), *sizes));
    return;
  }
  n.setOutput(0, n.create<ConstantOfShapeOp>(shape, splat));
}

void shapeOf(NodeImporter &n) {
  Value x = n.input(0);
  int64_t rank = NodeImporter::rank(x);
  auto clampAxis = [&](int64_t axis) { return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank); };
  int64_t start = clampAxis(n.intAttr("start", 0));
  int64_t end = clampAxis(n.intAttr("end", rank));
  n.setOutput(0, n.create<ShapeOp>(x, start, std::max(start, end)));
}

void sizeOf(NodeImporter &n) {
  Value x = n.input(0);
  Value dims = n.create<ShapeOp>(x, 0, NodeImporter::rank(x));
  n.setOutput(0, n.create<ReduceOp>(dims, ReduceKind::prod, Ints{0}, false));
}

/// Returns the size that |value| holds, an integer or its float; nothing if it is not known.
std::optional<Dim> readSize(Value value) {
  if (auto floats = NodeImporter::isFloat(value) ? getConstantDoubles(value) : std::nullopt) {
    constexpr double kFar = 1 << 24;
    bool isWhole =
        floats->size() == 1 && std::abs(floats->front()) < kFar && std::floor(floats->front()) == floats->front();
    return isWhole ? std::optional(Dim(int64_t(floats->front()))) : std::nullopt;
  }
  auto cast = NodeImporter::isFloat(value) ? value.getDefiningOp<CastOp>() : CastOp();
  auto sizes = readSizes(cast ? cast.getX() : value);
  return sizes && sizes->size() == 1 && !sizes->front().isUnknown() ? std::optional(sizes->front()) : std::nullopt;
}

void range(NodeImporter &n) {
  bool isInteger = !n.failed() && NodeImporter::elementType(n.input(1)).isSignlessInteger();
  auto first = isInteger ? getConstantInts(n.input(0)) : std::nullopt,
       by = isInteger ? getConstantInts(n.input(2)) : first;
  constexpr int64_t kMost = 1 << 16;
  if (first && by && first->front() >= 0 && by->front() == 1 && isRunTime(n, 1)) {
    (void)n.bindSizes(n.input(1), kMost); // read below
  }
  auto start = n.failed() ? std::nullopt : readSize(n.input(0)), limit = start ? readSize(n.input(1)) : std::nullopt,
       delta = limit ? readSize(n.input(2)) : std::nullopt;
  if (delta && delta->is(1) && (start->isSymbolic() || limit->isSymbolic())) {
    n.setOutput(0, openRange(n, *start, *limit, NodeImporter::elementType(n.input(0))));
    return;
  }
  if (isRunTime(n, 0) || isRunTime(n, 1) || isRunTime(n, 2)) {
    rangeRunTime(n);
    return;
  }
  n.setOutput(0, n.create<RangeOp>(n.input(0), n.input(1), n.input(2)));
}

void eyeLike(NodeImporter &n) {
  Value x = n.input(0);
  auto shape = NodeImporter::shape(x);
  if (shape.size() != 2 || llvm::any_of(shape, mlir::ShapedType::isDynamic) ||
      shape[0] * shape[1] > (int64_t(1) << 28)) {
    n.fail("its input must be a matrix of static, reasonable size");
    return;
  }
  if (!n.charge(shape[0] * shape[1] * static_cast<int64_t>(sizeof(double)))) {
    return;
  }
  mlir::Type element = n.hasAttr("dtype") ? n.typeOf(n.intAttr("dtype", 0)) : NodeImporter::elementType(x);
  std::vector<double> values(shape[0] * shape[1], 0.0);
  int64_t k = std::clamp(n.intAttr("k", 0), -shape[0], shape[1]);
  for (int64_t row = 0; row < shape[0]; ++row) {
    if (row + k >= 0 && row + k < shape[1]) {
      values[row * shape[1] + row + k] = 1.0;
    }
  }
  n.setOutput(0, n.floatConstant(element, shape, values));
}

//--- reshapes ---

/// Reshapes to |sizes|. With several unknown sizes, the dims come from the input's own shape in order. This is only
/// correct if each unknown size of the result is an unknown size of the input.
Value reshapeTo(NodeImporter &n, Value x, llvm::ArrayRef<Dim> sizes) {
  auto isUnknown = [](Dim dim) { return dim.isUnknown(); };
  if (n.failed() || llvm::count_if(sizes, isUnknown) <= 1) {
    return n.reshapeTo(x, sizes);
  }
  auto from = NodeImporter::sizes(x);
  llvm::SmallVector<Value> entries;
  Ints shape;
  auto next = from.begin();
  for (Dim dim : sizes) {
    shape.push_back(dim.isKnown() ? dim.value() : -1);
    if (dim.isKnown()) {
      entries.push_back(n.intVector({dim.value()}));
      continue;
    }
    next = std::find_if(next, from.end(), isUnknown);
    if (next == from.end() || dim.isSymbolic()) {
      n.unsupported("the result has more open dims than the input: fix them with --input_shapes");
      return x;
    }
    int64_t axis = next - from.begin();
    entries.push_back(n.create<ShapeOp>(x, axis, axis + 1));
    ++next;
  }
  return n.create<ReshapeOp>(x, n.create<ConcatOp>(entries, 0), shape);
}

/// Reshapes to a target that depends on open dims. Its known entries go to `shape`.
void reshapeAtRunTime(NodeImporter &n, Value x, Value target) {
  auto type = mlir::cast<mlir::RankedTensorType>(target.getType());
  if (type.getRank() != 1 || !type.hasStaticShape()) {
    n.unsupported(
        llvm::formatv("the shape (tensor '{0}') has no fixed number of entries: fix the dims it depends on with "
                      "--input_shapes",
                      n.inputName(1)));
    return;
  }
  auto from = NodeImporter::sizes(x), known = llvm::SmallVector<Dim>(numElements(type), mlir::ShapedType::kDynamic);
  if (auto read = readSizes(target)) {
    known = *read;
  }
  bool copies = n.intAttr("allowzero", 0) == 0;
  for (size_t i = 0; i < known.size(); ++i) {
    if (copies && known[i].is(0)) {
      known[i] = i < from.size() ? from[i] : Dim(mlir::ShapedType::kDynamic);
    }
    known[i] = known[i].is(-1) ? Dim(mlir::ShapedType::kDynamic) : known[i];
  }
  // If one entry is left open, the other entries determine it.
  if (llvm::count_if(known, [](Dim dim) { return dim.isUnknown(); }) <= 1) {
    n.setOutput(0, n.reshapeTo(x, known));
    return;
  }
  auto shape = llvm::map_to_vector(known, [](Dim dim) { return dim.isKnown() ? dim.value() : int64_t(-1); });
  n.setOutput(0, n.create<ReshapeOp>(x, target, shape));
}

/// 0 copies the dim of x (unless allowzero is set), and -1 is the remaining size.
void reshape(NodeImporter &n) {
  Value x = n.input(0);
  Value given = n.input(1);
  auto target = getConstantInts(given);
  if (n.failed()) {
    return;
  }
  bool allowZero = n.intAttr("allowzero", 0) != 0;
  if (isRunTime(n, 1)) {
    reshapeRunTime(n);
    return;
  }
  if (!target && allowZero && !n.openSizes(given)) {
    n.constantInts(1, "the shape of allowzero = 1"); // in Top, a 0 known only at run time means a copy
    return;
  }
  if (!target) {
    reshapeAtRunTime(n, x, given);
    return;
  }
  auto from = NodeImporter::sizes(x);
  llvm::SmallVector<Dim> shape;
  for (auto [i, dim] : llvm::enumerate(*target)) {
    if (dim == 0 && !allowZero) {
      if (i >= from.size()) {
        n.fail(llvm::formatv("entry {0} of the shape is 0 (copy), but the input has rank {1}", i, from.size()));
        return;
      }
      shape.push_back(from[i]);
      continue;
    }
    shape.push_back(dim == -1 ? Dim(mlir::ShapedType::kDynamic) : Dim(dim));
  }
  n.setOutput(0, NodeImporter::hasSizes(x, shape) ? x : reshapeTo(n, x, shape));
}

void flatten(NodeImporter &n) {
  Value x = n.input(0);
  auto shape = NodeImporter::sizes(x);
  int64_t rank = NodeImporter::rank(x), axis = n.intAttr("axis", 1);
  axis = axis == rank ? rank : n.normalizeAxis(axis, rank);
  auto product = [](llvm::ArrayRef<Dim> dims) {
    Dim count = 1;
    for (Dim dim : dims) {
      count = detail::mulDims(count, dim);
    }
    return count;
  };
  Dim outer = product(llvm::ArrayRef(shape).take_front(axis)), inner = product(llvm::ArrayRef(shape).drop_front(axis));
  if (outer.isUnknown() && inner.isUnknown()) {
    n.unsupported(
        "flattening dims that are open on both sides of the axis is not supported: fix them with --input_shapes");
    return;
  }
  llvm::SmallVector<Dim> result{outer, inner};
  n.setOutput(0, NodeImporter::hasSizes(x, result) ? x : n.reshapeTo(x, result));
}

Ints axesAttrOrInput(NodeImporter &n) {
  return n.hasInput(1) ? n.constantInts(1, "the list of axes") : n.intsAttr("axes");
}

void squeeze(NodeImporter &n) {
  if (isRunTime(n, 1)) {
    squeezeRunTime(n);
    return;
  }
  Value x = n.input(0);
  auto shape = NodeImporter::sizes(x);
  Ints axes = n.normalizeAxes(axesAttrOrInput(n), NodeImporter::rank(x));
  if (axes.empty()) {
    for (auto [d, dim] : llvm::enumerate(shape)) {
      if (dim.is(1)) {
        axes.push_back(d);
      }
    }
  }
  llvm::SmallVector<Dim> result;
  for (auto [d, dim] : llvm::enumerate(shape)) {
    if (!llvm::is_contained(axes, static_cast<int64_t>(d))) {
      result.push_back(dim);
    } else if (dim.isSymbolic() && minOf(dim) <= 1 && maxOf(dim) >= 1) {
      require(n, Arithmetic{n}.at(shapeVector(n, x), static_cast<int64_t>(d)), 1, llvm::formatv("dim {0}", d).str());
      x = takeFront(n, x, static_cast<int64_t>(d), 1);
    } else if (!dim.is(1) && !dim.isUnknown()) {
      n.fail(llvm::formatv("axis {0} has size {1}; only dims of size 1 can be squeezed", d, toText(dim)));
      return;
    }
  }
  n.setOutput(0, reshapeTo(n, x, result));
}

void unsqueeze(NodeImporter &n) {
  if (isRunTime(n, 1)) {
    unsqueezeRunTime(n);
    return;
  }
  Value x = n.input(0);
  Ints given = axesAttrOrInput(n);
  int64_t rank = NodeImporter::rank(x) + static_cast<int64_t>(given.size());
  Ints axes = n.normalizeAxes(given, rank);
  if (n.failed()) {
    return;
  }
  auto shape = NodeImporter::sizes(x);
  llvm::SmallVector<Dim> result;
  auto next = shape.begin();
  for (int64_t d = 0; d < rank; ++d) {
    result.push_back(llvm::is_contained(axes, d) ? Dim(1) : *next++);
  }
  n.setOutput(0, reshapeTo(n, x, result));
}

void transpose(NodeImporter &n) {
  Value x = n.input(0);
  Ints perm = n.intsAttr("perm");
  if (perm.empty()) {
    for (int64_t d = NodeImporter::rank(x) - 1; d >= 0; --d) {
      perm.push_back(d);
    }
  }
  n.setOutput(0,
              n.normalizeAxes(perm, NodeImporter::rank(x)).size() == perm.size() ? n.create<TransposeOp>(x, perm) : x);
}

//--- moves ---

void concat(NodeImporter &n) {
  auto inputs = n.inputs();
  if (inputs.empty()) {
    n.fail("it has no inputs");
    return;
  }
  int64_t axis = n.normalizeAxis(n.intAttr("axis", 1), NodeImporter::rank(inputs[0]));
  n.setOutput(0, inputs.size() == 1 ? inputs[0] : n.create<ConcatOp>(inputs, axis));
}

/// Positions and steps of a slice along one axis.
struct AxisSlice {
  Dim start, size;
  int64_t step;
};

/// Returns the slice of a dim of a known size. Negative positions count from the end and are then clamped. Backward
/// slices are clamped to an element; numpy selects nothing there.
AxisSlice sliceKnown(int64_t dim, int64_t start, int64_t end, int64_t step) {
  step = std::clamp<int64_t>(step, -std::max<int64_t>(dim, 1), std::max<int64_t>(dim, 1));
  start = start < 0 ? std::max<int64_t>(start, -dim - 1) + dim : start;
  end = end < 0 ? std::max<int64_t>(end, -dim - 1) + dim : end;
  start = step > 0 ? std::clamp<int64_t>(start, 0, dim) : std::min(std::max<int64_t>(start, 0), dim - 1);
  end = step > 0 ? std::clamp<int64_t>(end, 0, dim) : std::clamp<int64_t>(end, -1, dim - 1);
  int64_t size = step > 0 ? (end - start + step - 1) / step : (start - end - step - 1) / -step;
  size = std::max<int64_t>(size, 0);
  return {size == 0 ? 0 : start, size, step};
}

/// Returns the position that |at| stands for in a dim of size |dim|; unknown if its sign depends on the symbols.
Dim positionIn(Dim dim, Dim at) {
  constexpr int64_t kFar = int64_t(1) << 41;
  if (at.isKnown()) {
    at = std::clamp(at.value(), -kFar, kFar);
  }
  return minOf(at) >= 0 ? at : maxOf(at) < 0 ? at + dim : Dim(mlir::ShapedType::kDynamic);
}

/// Returns the slice of a dim if its size or a position is an expression; an unknown size if it cannot be determined.
AxisSlice sliceOpen(Dim dim, Dim start, Dim end, int64_t step) {
  start = positionIn(dim, start), end = positionIn(dim, end);
  if (step > 0) {
    start = min(max(start, 0), dim), end = min(max(end, 0), dim);
    return {start, ceilDiv(max(end - start, 0), step), step};
  }
  start = min(max(start, 0), dim - 1), end = max(end, -1);
  return {start, ceilDiv(max(start - end, 0), -step), step};
}

using Sizes = llvm::SmallVector<Dim>;

/// Converts ONNX's lists to top.slice's lists with one entry per dim.
void makeSlice(NodeImporter &n, const Sizes &starts, const Sizes &ends, Ints axes, Ints steps) {
  Value x = n.input(0);
  auto shape = NodeImporter::sizes(x);
  if (axes.empty()) {
    for (size_t i = 0; i < starts.size(); ++i) {
      axes.push_back(i);
    }
  }
  axes = n.normalizeAxes(axes, NodeImporter::rank(x));
  if (steps.empty()) {
    steps.assign(starts.size(), 1);
  }
  if (n.failed() || ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    n.fail(llvm::formatv("starts, ends, axes and steps have {0}, {1}, {2} and {3} entries; they must agree",
                         starts.size(), ends.size(), axes.size(), steps.size()));
    return;
  }
  Sizes allStarts(shape.size(), 0), allSizes(shape);
  Ints allSteps(shape.size(), 1);
  for (auto [i, axis] : llvm::enumerate(axes)) {
    Dim dim = shape[axis], start = starts[i], end = ends[i];
    int64_t step = steps[i];
    if (step == 0) {
      n.fail(llvm::formatv("the step of axis {0} is 0", axis));
      return;
    }
    if (dim.isUnknown()) {
      // Unknown dims support only "from start to the end" and "all".
      constexpr int64_t kFar = (int64_t(1) << 31) - 1;
      bool toEnd = start.isKnown() && end.isKnown() && (step > 0 ? end.value() >= kFar : end.value() <= -kFar);
      if (!toEnd) {
        n.unsupported(
            llvm::formatv("axis {0} is open and the slice does not reach its end: fix it with --input_shapes", axis));
        return;
      }
      allStarts[axis] = start;
      allSteps[axis] = step;
      continue;
    }
    bool isKnown = dim.isKnown() && start.isKnown() && end.isKnown();
    AxisSlice slice =
        isKnown ? sliceKnown(dim.value(), start.value(), end.value(), step) : sliceOpen(dim, start, end, step);
    if (slice.size.isUnknown()) {
      n.unsupported(llvm::formatv("the slice from {0} to {1} of axis {2} of size {3} has no size that is known for the "
                                  "whole range: narrow or fix the dims with --dims",
                                  toText(start), toText(end), axis, toText(dim)));
      return;
    }
    allStarts[axis] = slice.start, allSizes[axis] = slice.size, allSteps[axis] = slice.step;
  }
  n.setOutput(0, n.slice(x, allStarts, allSizes, allSteps));
}

void sliceAttributes(NodeImporter &n) {
  makeSlice(n, toSizes(n.intsAttr("starts")), toSizes(n.intsAttr("ends")), n.intsAttr("axes"), {});
}

void slice(NodeImporter &n) {
  if (llvm::any_of(llvm::seq(1u, 5u), [&](unsigned i) { return isRunTime(n, i); })) {
    sliceRunTime(n);
    return;
  }
  makeSlice(n, n.sizesInput(1, "starts"), n.sizesInput(2, "ends"), n.hasInput(3) ? n.constantInts(3, "axes") : Ints(),
            n.hasInput(4) ? n.constantInts(4, "steps") : Ints());
}

/// Splits a dim of an open size into |parts| equal parts.
void splitOpen(NodeImporter &n, int64_t axis, Dim dim, int64_t parts) {
  Value x = n.input(0);
  if (dim.isUnknown() || !isMultipleOf(dim, parts)) {
    n.unsupported(llvm::formatv("axis {0} is open: fix it with --input_shapes", axis));
    return;
  }
  Sizes starts(NodeImporter::rank(x), 0), extents = NodeImporter::sizes(x);
  extents[axis] = floorDiv(dim, parts);
  for (int64_t i = 0; i < parts; ++i) {
    n.setOutput(i, parts == 1 ? x : n.slice(x, starts, extents, Ints(starts.size(), 1)));
    starts[axis] += extents[axis];
  }
}

void split(NodeImporter &n) {
  Value x = n.input(0);
  int64_t axis = n.normalizeAxis(n.intAttr("axis", 0), NodeImporter::rank(x));
  int64_t parts = n.numOutputs(), dim = NodeImporter::dim(x, axis);
  if (isRunTime(n, 1)) {
    splitRunTime(n, axis);
    return;
  }
  Ints sizes = n.hasInput(1) ? n.constantInts(1, "the sizes") : n.intsAttr("split");
  if (n.failed()) {
    return;
  }
  if (mlir::ShapedType::isDynamic(dim)) {
    bool isEven = sizes.empty() && parts > 0;
    splitOpen(n, axis, isEven ? NodeImporter::sizes(x)[axis] : Dim(mlir::ShapedType::kDynamic), parts);
    return;
  }
  if (sizes.empty() && parts > 0) {
    // num_outputs: all parts are equal except for the last.
    int64_t each = (dim + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) {
      sizes.push_back(std::clamp<int64_t>(dim - i * each, 0, each));
    }
  }
  int64_t sum = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > dim) {
      n.fail(llvm::formatv("the size {0} of a part is outside 0..{1}, the size of axis {2}", size, dim, axis));
      return;
    }
    sum += size;
  }
  if (sum != dim || static_cast<int64_t>(sizes.size()) != parts) {
    n.fail(llvm::formatv("{0} sizes with the sum {1} for {2} outputs of an axis of size {3}", sizes.size(), sum, parts,
                         dim));
    return;
  }
  Sizes starts(NodeImporter::rank(x), 0), extents = NodeImporter::sizes(x);
  for (auto [i, size] : llvm::enumerate(sizes)) {
    extents[axis] = size;
    n.setOutput(i, sizes.size() == 1 ? x : n.slice(x, starts, extents, Ints(starts.size(), 1)));
    starts[axis] += size;
  }
}

/// Crops |x| by the negative |pads|, and sets these to 0.
Value cropped(NodeImporter &n, Value x, Ints &pads) {
  Sizes starts, sizes = NodeImporter::sizes(x);
  size_t rank = sizes.size();
  bool isCut = llvm::any_of(pads, [](int64_t pad) { return pad < 0; });
  auto cutBy = [](int64_t pad) { return -std::clamp<int64_t>(pad, -(int64_t(1) << 40), 0); };
  for (size_t d = 0; d < rank; ++d) {
    starts.push_back(cutBy(pads[d]));
    int64_t less = cutBy(pads[d]) + cutBy(pads[rank + d]);
    if (sizes[d].isUnknown() && less > 0) {
      n.unsupported(llvm::formatv("axis {0} is open and is cropped: fix it with --input_shapes", d));
    }
    sizes[d] = less > 0 ? max(sizes[d] - less, 0) : sizes[d];
    pads[d] = std::max<int64_t>(pads[d], 0), pads[rank + d] = std::max<int64_t>(pads[rank + d], 0);
  }
  return isCut ? n.slice(x, starts, sizes, Ints(rank, 1)) : x;
}

/// Returns the pads of all dims, given those of |axes|, or of all dims without axes.
template <typename T>
std::optional<llvm::SmallVector<T>> padsOfDims(NodeImporter &n, llvm::ArrayRef<T> pads, llvm::ArrayRef<int64_t> axes,
                                               int64_t rank) {
  size_t count = axes.empty() ? rank : axes.size();
  if (n.failed() || pads.size() != 2 * count) {
    n.fail(llvm::formatv("there are {0} pads; expected {1}", pads.size(), 2 * count));
    return std::nullopt;
  }
  llvm::SmallVector<T> all(2 * rank, T(0));
  for (size_t i = 0; i < count; ++i) {
    int64_t axis = axes.empty() ? static_cast<int64_t>(i) : axes[i];
    all[axis] = pads[i];
    all[rank + axis] = pads[count + i];
  }
  return all;
}

void makePad(NodeImporter &n, const Ints &pads, const Ints &axes, double value) {
  Value x = n.input(0);
  int64_t rank = NodeImporter::rank(x);
  std::string mode = n.stringAttr("mode", "constant");
  auto kind = llvm::StringSwitch<std::optional<PadMode>>(mode)
                  .Case("constant", PadMode::constant)
                  .Case("reflect", PadMode::reflect)
                  .Case("edge", PadMode::edge)
                  .Case("wrap", PadMode::wrap)
                  .Default(std::nullopt);
  if (!kind) {
    n.fail(llvm::formatv("mode '{0}' is unknown; allowed are constant, reflect, edge and wrap", mode));
    return;
  }
  if (n.failed()) {
    return;
  }
  auto padsOfAll = padsOfDims(n, llvm::ArrayRef<int64_t>(pads), axes, rank);
  if (!padsOfAll) {
    return;
  }
  Ints all = *padsOfAll;
  if (*kind == PadMode::wrap) { // wraps around the cropped tensor
    x = cropped(n, x, all);
  }
  auto ownsOpenDim = [&](int64_t d) {
    return NodeImporter::sizes(x)[d].isSymbolic() && (all[d] != 0 || all[rank + d] != 0);
  };
  if (*kind != PadMode::constant && llvm::any_of(llvm::seq<int64_t>(0, rank), ownsOpenDim)) {
    padOpen(n, x, toSizes(all), mode, Value());
    return;
  }
  n.setOutput(0, n.create<PadOp>(x, all, *kind, llvm::APFloat(value)));
}

void padAttributes(NodeImporter &n) { makePad(n, n.intsAttr("pads"), {}, n.floatAttr("value", 0.0)); }

void pad(NodeImporter &n) {
  if (llvm::any_of(llvm::seq(1u, 4u), [&](unsigned i) { return isRunTime(n, i); })) {
    padRunTime(n);
    return;
  }
  if (auto open = n.openSizes(n.input(1))) {
    Value x = n.input(0), fill = n.hasInput(2) ? n.reshape(n.input(2), {}) : n.scalarLike(x, 0);
    int64_t rank = NodeImporter::rank(x);
    Ints axes = n.hasInput(3) ? n.normalizeAxes(n.constantInts(3, "the list of axes"), rank) : Ints();
    if (auto pads = padsOfDims(n, llvm::ArrayRef<Dim>(*open), axes, rank)) {
      padOpen(n, x, *pads, n.stringAttr("mode", "constant"), fill);
    }
    return;
  }
  Ints pads = n.constantInts(1, "the list of pads");
  auto value = n.hasInput(2) ? n.constantDoubles(2, "the pad value") : llvm::SmallVector<double>{0.0};
  Ints axes =
      n.hasInput(3) ? n.normalizeAxes(n.constantInts(3, "the list of axes"), NodeImporter::rank(n.input(0))) : Ints();
  makePad(n, pads, axes, value.empty() ? 0.0 : value[0]);
}

void expand(NodeImporter &n) {
  Value x = n.input(0);
  Value target = n.input(1);
  if (auto shape = getConstantInts(target)) {
    n.setOutput(0, n.create<ExpandOp>(x, Value(), *shape));
    return;
  }
  auto type = mlir::cast<mlir::RankedTensorType>(target.getType());
  if (n.failed() || type.getRank() != 1 || !type.hasStaticShape()) {
    n.unsupported("the shape has no fixed number of entries: fix the dims it depends on with --input_shapes");
    return;
  }
  if (isRunTime(n, 1)) {
    n.setOutput(0, expandRunTime(n, x, n.sizesInput(1, "the shape")));
    return;
  }
  if (auto sizes = n.openSizes(target)) {
    n.setOutput(0, n.expandTo(x, *sizes));
    return;
  }
  auto known = readSizes(target);
  Ints shape;
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    shape.push_back(known && (*known)[i].isKnown() ? (*known)[i].value() : -1);
  }
  n.setOutput(0, n.create<ExpandOp>(x, target, shape));
}

void tile(NodeImporter &n) {
  if (isRunTime(n, 1)) {
    tileRunTime(n);
    return;
  }
  Value x = n.input(0);
  if (auto open = n.openSizes(n.input(1))) {
    tileOpen(n, *open);
    return;
  }
  Ints repeats = n.constantInts(1, "the list of repeats");
  n.setOutput(0, n.create<TileOp>(x, repeats));
}

void trilu(NodeImporter &n) {
  Shape matrix = n.input(0);
  if (isRunTime(n, 1) ||
      (matrix.rank() >= 2 && !matrix.dropFront(matrix.rank() - 2).isKnown() && Shape(matrix).isDetermined())) {
    triluRunTime(n);
    return;
  }
  Ints k = n.hasInput(1) ? n.constantInts(1, "k") : Ints{0};
  if (k.size() != 1) {
    n.fail("k is not a single number");
    return;
  }
  n.setOutput(0, n.create<TriluOp>(n.input(0), k[0], n.intAttr("upper", 1) != 0));
}

void depthToSpace(NodeImporter &n) {
  n.setOutput(0,
              n.create<DepthToSpaceOp>(n.input(0), n.requiredInt("blocksize"), n.stringAttr("mode", "DCR") == "CRD"));
}

/// Mode CRD (opset 28): the channels of a block are contiguous.
void spaceToDepth(NodeImporter &n) {
  Value x = n.input(0);
  int64_t block = n.requiredInt("blocksize");
  Value y = n.create<SpaceToDepthOp>(x, block);
  if (n.stringAttr("mode", "DCR") == "CRD" && !n.failed()) {
    Ints shape(NodeImporter::shape(y));
    if (llvm::any_of(shape, mlir::ShapedType::isDynamic)) {
      n.unsupported("mode CRD needs static dims: fix them with --input_shapes");
      return;
    }
    int64_t channels = NodeImporter::dim(x, 1), places = block * block;
    Value split = n.reshape(y, {shape[0], places, channels, shape[2], shape[3]});
    y = n.reshape(n.transpose(split, {0, 2, 1, 3, 4}), shape);
  }
  n.setOutput(0, y);
}

} // namespace

llvm::ArrayRef<HandlerEntry> shapeHandlers() {
  static const HandlerEntry entries[] = {
      {"", "Constant", constantNode},
      {"", "ConstantOfShape", constantOfShape},
      {"", "Shape", shapeOf},
      {"", "Size", sizeOf},
      {"", "Range", range},
      {"", "EyeLike", eyeLike},
      {"", "Reshape", reshape},
      {"", "Flatten", flatten},
      {"", "Squeeze", squeeze},
      {"", "Unsqueeze", unsqueeze},
      {"", "Transpose", transpose},
      {"", "Concat", concat},
      {"", "Slice", sliceAttributes},
      {"", "Slice", slice, 10},
      {"", "Split", split},
      {"", "Pad", padAttributes},
      {"", "Pad", pad, 11},
      {"", "Expand", expand},
      {"", "Tile", tile},
      {"", "Trilu", trilu},
      {"", "DepthToSpace", depthToSpace},
      {"", "SpaceToDepth", spaceToDepth},
  };
  return entries;
}

} // namespace tessera::top::onnx_import
