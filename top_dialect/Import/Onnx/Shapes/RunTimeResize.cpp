//===- RunTimeResize.cpp - Resizes by sizes that a run computes -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Shapes/RunTimeResize.h"

#include "top_dialect/Import/Onnx/Sizes/IndexArithmetic.h"

#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

/// Resizes one dim of |x|.
class DimResizer {
public:
  DimResizer(NodeImporter &n, Value x, const ResizedDim &dim, const Interpolation &how)
      : n(n), x(x), dim(dim), how(how), f{n, n.b.getF64Type()}, rank(NodeImporter::rank(x)) {
    in = n.cast(n.create<ShapeOp>(x, dim.axis, dim.axis + 1), f.element);
    out = n.cast(sizeVector(n, {dim.size}), f.element);
    last = f.sub(in, f.number(1));
    at = coordinates();
  }

  Value run() { return how.mode == ResizeMode::nearest ? read(rounded()) : how.antialias ? multiply() : interpolate(); }

  /// Returns |y| with the extrapolation value at positions outside of x.
  Value extrapolate(Value y) {
    Value isBefore = f.is(at, CompareKind::lt, f.number(0)), isBehind = f.is(at, CompareKind::gt, last);
    Value isOutside = alignWith(n, n.create<OrOp>(isBefore, isBehind), dim.axis, rank);
    return f.where(isOutside, n.scalarLike(y, how.extrapolation), y);
  }

private:
  /// Returns the position in x of each element of the result.
  Value coordinates() {
    Value o = n.cast(iotaTo(n, dim.size), f.element), half = f.number(0.5), zero = f.number(0);
    Value centre = f.div(f.add(o, half), dim.scale), hasSeveral = f.is(out, CompareKind::gt, f.number(1));
    Value steps = f.max(f.sub(out, f.number(1)), f.number(1));
    switch (how.coord) {
    case ResizeCoord::half_pixel:
      return f.sub(centre, half);
    case ResizeCoord::pytorch_half_pixel:
      return f.where(hasSeveral, f.sub(centre, half), zero);
    case ResizeCoord::align_corners:
      return f.where(hasSeveral, f.div(f.mul(o, last), steps), zero);
    case ResizeCoord::asymmetric:
      return f.div(o, dim.scale);
    case ResizeCoord::half_pixel_symmetric: {
      Value adjustment = f.div(out, f.mul(dim.scale, in));
      Value offset = f.mul(f.div(in, f.number(2)), f.sub(f.number(1), adjustment));
      return f.add(offset, f.sub(centre, half));
    }
    case ResizeCoord::tf_crop_and_resize: {
      Value step = f.div(f.mul(f.sub(dim.roiEnd, dim.roiStart), last), steps);
      Value middle = f.mul(f.mul(half, f.add(dim.roiStart, dim.roiEnd)), last);
      return f.where(hasSeveral, f.add(f.mul(dim.roiStart, last), f.mul(o, step)), middle);
    }
    case ResizeCoord::tf_half_pixel_for_nn:
      return centre;
    }
    return o;
  }

  Value floor(Value v) { return n.create<FloorOp>(v); }
  Value ceil(Value v) { return n.create<CeilOp>(v); }

  Value rounded() {
    // A scale such as 1.7 is a rounded single. Rounding the coordinate to single removes its error.
    Value single = n.cast(n.cast(at, n.b.getF32Type()), f.element), half = f.number(0.5);
    switch (how.round) {
    case ResizeRound::round_prefer_floor:
      return ceil(f.sub(single, half));
    case ResizeRound::round_prefer_ceil:
      return floor(f.add(single, half));
    case ResizeRound::floor:
      return floor(single);
    case ResizeRound::ceil:
      return ceil(single);
    }
    return single;
  }

  /// Returns the elements of x at |positions|, or at its first or last element.
  Value read(Value positions) {
    Value inside = f.clamp(positions, f.number(0), last);
    return n.create<GatherOp>(x, n.cast(inside, n.b.getI64Type()), dim.axis);
  }

  /// Returns the value of the interpolation kernel at |distance|.
  Value kernel(Value distance) {
    Value t = n.create<AbsOp>(distance), zero = f.number(0), one = f.number(1);
    if (how.mode == ResizeMode::linear) {
      return f.max(f.sub(one, t), zero);
    }
    double a = how.cubic;
    auto polynomial = [&](double c3, double c2, double c1, double c0) {
      Value sum = f.add(f.mul(t, f.number(c3)), f.number(c2));
      return f.add(f.mul(f.add(f.mul(sum, t), f.number(c1)), t), f.number(c0));
    };
    Value near = polynomial(a + 2, -(a + 3), 0, 1), far = polynomial(a, -5 * a, 8 * a, -4 * a);
    far = f.where(f.is(t, CompareKind::lt, f.number(2)), far, zero);
    return f.where(f.is(t, CompareKind::le, one), near, far);
  }

  /// Returns the kernel at |distance|, or 0 for |positions| that the mode excludes.
  Value weight(Value positions, Value distance) {
    Value value = kernel(distance);
    if (!how.excludesOutside) {
      return value;
    }
    Value isInside =
        n.create<AndOp>(f.is(positions, CompareKind::ge, f.number(0)), f.is(positions, CompareKind::le, last));
    return f.where(isInside, value, f.number(0));
  }

  Value interpolate() {
    Value base = floor(at), total, y;
    llvm::SmallVector<std::pair<Value, Value>> taps;
    bool isCubic = how.mode == ResizeMode::cubic;
    for (int64_t offset = isCubic ? -1 : 0; offset <= (isCubic ? 2 : 1); ++offset) {
      Value position = f.add(base, f.number(double(offset))), own = weight(position, f.sub(position, at));
      taps.push_back({position, own});
      total = total ? f.add(total, own) : own;
    }
    for (auto [position, own] : taps) {
      Value factor = n.cast(f.div(own, total), NodeImporter::elementType(x));
      Value part = n.create<MulOp>(read(position), alignWith(n, factor, dim.axis, rank));
      y = y ? n.create<AddOp>(y, part) : part;
    }
    return y;
  }

  /// Antialiasing: a reduction widens the kernel, so each element is a sum over up to all positions, also those up to
  /// two sizes of x outside of x.
  Value multiply() {
    Dim size = NodeImporter::sizes(x)[dim.axis], extended = 5 * size;
    Value positions = f.sub(n.cast(iotaTo(n, extended), f.element), f.mul(in, f.number(2)));
    Value stretch = f.min(dim.scale, f.number(1)), column = n.reshapeTo(at, {dim.size, Dim(1)});
    Value weights = weight(positions, f.mul(f.sub(positions, column), stretch));
    weights = f.div(weights, n.create<ReduceOp>(weights, ReduceKind::sum, Ints{1}, true));
    Ints order(rank);
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[dim.axis], order.back()); // its own inverse
    Value rows = n.transpose(read(positions), order);
    Value table = n.transpose(n.cast(weights, NodeImporter::elementType(x)), {1, 0});
    return n.transpose(n.create<MatMulOp>(rows, table, Value(), false, false, false, llvm::APFloat(-1.0)), order);
  }

  NodeImporter &n;
  Value x;
  const ResizedDim &dim;
  const Interpolation &how;
  Arithmetic f;
  int64_t rank;
  Value in, out, last; ///< sizes of x and of the result, and the last position in x
  Value at;            ///< coordinates in x
};

} // namespace

Value resizeByOps(NodeImporter &n, Value x, llvm::ArrayRef<ResizedDim> dims, const Interpolation &interpolation) {
  mlir::Type element = NodeImporter::elementType(x);
  bool isNearest = interpolation.mode == ResizeMode::nearest;
  if (!isNearest && !NodeImporter::isFloat(x)) {
    n.unsupported("it interpolates integers between sizes that are known at run time only; cast them to floats");
  }
  for (const ResizedDim &dim : dims) {
    if (!n.failed() && minOf(NodeImporter::sizes(x)[dim.axis]) < 1) {
      n.unsupported(llvm::Twine("dim ") + llvm::Twine(dim.axis) + " may be empty: give it a range from 1 with --dims");
    }
  }
  Value y = isNearest || element.isF64() ? x : n.cast(x, n.b.getF32Type());
  llvm::SmallVector<DimResizer> resizers;
  for (const ResizedDim &dim : dims) {
    if (n.failed()) {
      return x;
    }
    resizers.emplace_back(n, y, dim, interpolation);
    y = resizers.back().run();
  }
  for (DimResizer &resizer : resizers) {
    y = interpolation.coord == ResizeCoord::tf_crop_and_resize ? resizer.extrapolate(y) : y;
  }
  return n.cast(y, element);
}

} // namespace tessera::top::onnx_import
