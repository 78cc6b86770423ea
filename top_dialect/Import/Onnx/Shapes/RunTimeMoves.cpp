//===- RunTimeMoves.cpp - Slices, pads and tiles that a run computes ------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/GraphImporter.h"
#include "top_dialect/Import/Onnx/Model/OnnxModel.h"
#include "top_dialect/Import/Onnx/Shapes/RunTimeShapes.h"
#include "top_dialect/Import/Onnx/Sizes/IndexArithmetic.h"

#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

/// Returns elements start, start + step, ... of |x| along |axis|.
static Value gatherFrom(NodeImporter &n, Value x, int64_t axis, Value start, Value step, Dim size) {
  Arithmetic i{n};
  Value indices = iotaTo(n, size);
  indices = step ? i.mul(indices, step) : indices;
  return n.create<GatherOp>(x, i.add(indices, start), axis);
}

/// Returns the dims that |axes| may select: its entries, the first |count| dims without it, and all dims if it is not
/// constant.
static Ints selectedDims(NodeImporter &n, Value axes, int64_t count, int64_t rank) {
  auto known = axes && !n.failed() ? getConstantInts(axes) : std::nullopt;
  if (known) {
    return n.normalizeAxes(*known, rank);
  }
  Ints dims(axes ? rank : std::min(count, rank));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

void sliceRunTime(NodeImporter &n) {
  Value x = n.input(0);
  auto most = largestSizes(n, x);
  if (!most) {
    return;
  }
  Arithmetic i{n};
  auto rank = static_cast<int64_t>(most->size());
  Value dims = shapeVector(n, x), zero = i.number(0), axes = n.hasInput(3) ? vectorInput(n, 3) : Value();
  Value steps =
      n.hasInput(4) ? spread(n, n.intVector(Ints(rank, 1)), axes, vectorInput(n, 4)) : n.intVector(Ints(rank, 1));
  Value given = vectorInput(n, 1), starts = spread(n, n.intVector(Ints(rank, 0)), axes, given);
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
  for (int64_t d : selectedDims(n, axes, countOf(given), rank)) {
    Dim size = bindDim(n, sizes, d, (*most)[d]);
    x = gatherFrom(n, x, d, i.at(starts, d), i.at(steps, d), size);
  }
  n.setOutput(0, x);
}

void splitRunTime(NodeImporter &n, int64_t axis) {
  Value x = n.input(0);
  auto most = largestSizes(n, x);
  if (!most) {
    return;
  }
  Arithmetic i{n};
  Value sizes = vectorInput(n, 1), starts = n.create<CumSumOp>(sizes, 0, true, false);
  if (countOf(sizes) != int64_t(n.numOutputs())) {
    n.fail(llvm::formatv("{0} sizes for {1} outputs", countOf(sizes), n.numOutputs()));
    return;
  }
  Value size = n.create<ShapeOp>(x, axis, axis + 1);
  require(n, i.sub(i.reduce(sizes, ReduceKind::sum), size), 0, "rest of a split");
  for (unsigned part = 0; part < n.numOutputs() && !n.failed(); ++part) {
    std::string name = llvm::formatv("{0}.{1}", n.graph.nameOf(n.node.output(int(part))), axis);
    DimRange range{0, (*most)[axis], 1, (*most)[axis]};
    Dim own = n.graph.model.state->runTimeSizes.bind(n.b, n.loc, {sizes, int64_t(part)}, name, range);
    n.setOutput(part, gatherFrom(n, x, axis, i.at(starts, part), Value(), own));
  }
}

/// Returns the element of a dim of |size| elements, a vector of one i64, that each of |positions| reads in |mode|.
static Value sourceOfPad(NodeImporter &n, llvm::StringRef mode, Value positions, Value size) {
  Arithmetic i{n};
  Value zero = i.number(0), last = i.sub(size, i.number(1));
  if (mode == "wrap") {
    return i.mod(positions, size);
  }
  if (mode == "reflect") { // the only element of a dim is repeated
    Value period = i.max(i.mul(last, i.number(2)), i.number(1)), within = i.mod(positions, period);
    return i.min(i.min(within, i.sub(period, within)), last);
  }
  return i.clamp(positions, zero, last);
}

/// Pads dim |d| of |x| to |size| elements, |begin| of them before those of |x|.
static Value padDim(NodeImporter &n, Value x, int64_t d, llvm::StringRef mode, Value begin, Dim size, Value fill) {
  Arithmetic i{n};
  Value own = n.create<ShapeOp>(x, d, d + 1), positions = i.sub(iotaTo(n, size), begin);
  int64_t rank = NodeImporter::rank(x);
  Value y = n.create<GatherOp>(x, sourceOfPad(n, mode, positions, own), d);
  if (mode != "constant") {
    return y;
  }
  Value isInside =
      n.create<AndOp>(i.is(positions, CompareKind::ge, i.number(0)), i.is(positions, CompareKind::lt, own));
  return i.where(alignWith(n, isInside, d, rank), y, fill);
}

void padRunTime(NodeImporter &n) {
  Value x = n.input(0);
  auto most = largestSizes(n, x);
  if (!most || llvm::is_contained(*most, 0)) {
    n.unsupported("its pads are computed at run time and its input has no elements");
    return;
  }
  Arithmetic i{n};
  auto rank = static_cast<int64_t>(most->size());
  std::string mode = n.stringAttr("mode", "constant");
  Value given = vectorInput(n, 1), axes = n.hasInput(3) ? vectorInput(n, 3) : Value();
  int64_t count = countOf(given) / 2;
  auto half = [&](int64_t first) { return n.slice(given, {Dim(first)}, {Dim(count)}, {1}); };
  Value none = n.intVector(Ints(rank, 0));
  Value begins = spread(n, none, axes, half(0)), ends = spread(n, none, axes, half(count));
  Value sizes = i.max(i.add(shapeVector(n, x), i.add(begins, ends)), i.number(0));
  Value fill = n.hasInput(2) ? n.reshape(n.cast(n.input(2), NodeImporter::elementType(x)), {}) : n.scalarLike(x, 0);
  for (int64_t d : selectedDims(n, axes, count, rank)) {
    Dim size = bindDim(n, sizes, d, 2 * (*most)[d] + 8);
    x = padDim(n, x, d, mode, i.at(begins, d), size, fill);
  }
  n.setOutput(0, x);
}

/// Pads dim |d| of |x| by |begin| and |end| times |fill|.
static Value fillAround(NodeImporter &n, Value x, int64_t d, Dim begin, Dim end, Value fill) {
  auto part = [&](Dim size) {
    auto sizes = NodeImporter::sizes(x);
    sizes[d] = size;
    return n.expandTo(fill, sizes);
  };
  llvm::SmallVector<Value> parts = {x};
  if (!begin.is(0)) {
    parts.insert(parts.begin(), part(begin));
  }
  if (!end.is(0)) {
    parts.push_back(part(end));
  }
  return parts.size() == 1 ? x : n.create<ConcatOp>(parts, d);
}

void padOpen(NodeImporter &n, Value x, llvm::ArrayRef<Dim> pads, llvm::StringRef mode, Value fill) {
  size_t rank = Shape(x).rank();
  for (size_t d = 0; d < rank && !n.failed(); ++d) {
    Dim begin = pads[d], end = pads[rank + d], own = NodeImporter::sizes(x)[d], size = own + begin + end;
    bool isCut = minOf(begin) < 0 || minOf(end) < 0;
    if (begin.is(0) && end.is(0)) {
      continue;
    }
    if (mode == "constant" && !isCut) {
      x = fillAround(n, x, int64_t(d), begin, end, fill);
      continue;
    }
    if (size.isUnknown() || minOf(own) < 1 || (mode == "wrap" && isCut)) {
      n.unsupported(llvm::formatv("dim {0} of {1} elements is padded by {2} and {3} in mode {4}: fix its size, or give "
                                  "it a range from 1, with --dims",
                                  d, toText(own), toText(begin), toText(end), mode));
    }
    x = padDim(n, x, int64_t(d), mode, sizeVector(n, {begin}), max(size, 0), fill);
  }
  n.setOutput(0, x);
}

void tileRunTime(NodeImporter &n) {
  Value x = n.input(0);
  auto most = largestSizes(n, x);
  if (auto repeats = most ? n.bindSizes(n.input(1), 16) : std::nullopt) {
    return tileOpen(n, *repeats);
  }
  n.fail("its repeats must be a vector of at most 32 integers");
}

void tileOpen(NodeImporter &n, llvm::ArrayRef<Dim> repeats) {
  Value x = n.input(0);
  Arithmetic i{n};
  auto sizes = NodeImporter::sizes(x);
  if (repeats.size() != sizes.size()) {
    n.fail("the number of repeats is not the rank of its input");
  }
  for (size_t d = 0; d < sizes.size() && !n.failed(); ++d) {
    Dim size = sizes[d] * repeats[d];
    if (size.isUnknown()) {
      n.unsupported(llvm::formatv("axis {0} of {1} elements is repeated {2} times: fix the dims with --dims", d,
                                  toText(sizes[d]), toText(repeats[d])));
    } else if (sizes[d].is(1)) {
      llvm::SmallVector<Dim> target = NodeImporter::sizes(x);
      target[d] = size;
      x = repeats[d].is(1) ? x : n.expandTo(x, target);
    } else if (!repeats[d].is(1)) {
      Value width = i.max(n.create<ShapeOp>(x, int64_t(d), int64_t(d) + 1), i.number(1));
      x = n.create<GatherOp>(x, i.mod(iotaTo(n, size), width), int64_t(d));
    }
  }
  n.setOutput(0, x);
}

} // namespace tessera::top::onnx_import
