//===- OnnxSlice.cpp - Handlers of slices, splits and concatenation ----===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/NodeImporter.h"
#include "top_dialect/Import/Onnx/Shapes/RunTimeShapes.h"
#include "top_dialect/Import/Onnx/Sizes/ShapeArithmetic.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

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

} // namespace

llvm::ArrayRef<HandlerEntry> sliceHandlers() {
  static const HandlerEntry entries[] = {
      {"", "Concat", concat},
      {"", "Slice", sliceAttributes},
      {"", "Slice", slice, 10},
      {"", "Split", split},
  };
  return entries;
}

} // namespace tessera::top::onnx_import
