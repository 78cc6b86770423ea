//===- OnnxReshape.cpp - Handlers of reshapes and transposes -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/Import/Onnx/NodeImporter.h"
#include "top_dialect/Import/Onnx/Shapes/RunTimeShapes.h"
#include "top_dialect/Import/Onnx/Sizes/IndexArithmetic.h"
#include "top_dialect/Import/Onnx/Sizes/ShapeArithmetic.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

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

} // namespace

llvm::ArrayRef<HandlerEntry> reshapeHandlers() {
  static const HandlerEntry entries[] = {
      {"", "Reshape", reshape},     {"", "Flatten", flatten},     {"", "Squeeze", squeeze},
      {"", "Unsqueeze", unsqueeze}, {"", "Transpose", transpose},
  };
  return entries;
}

} // namespace tessera::top::onnx_import
