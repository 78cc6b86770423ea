//===- OnnxResize.cpp - Handlers of Resize and Upsample ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/IR/SymbolicLists.h"
#include "top_dialect/Import/Onnx/NodeImporter.h"
#include "top_dialect/Import/Onnx/Operators/GridSample.h"
#include "top_dialect/Import/Onnx/Shapes/RunTimeResize.h"
#include "top_dialect/Import/Onnx/Shapes/RunTimeShapes.h"
#include "top_dialect/Import/Onnx/Sizes/IndexArithmetic.h"
#include "top_dialect/Reference/ResizeTaps.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

using Doubles = llvm::SmallVector<double>;

ResizeMode modeOf(NodeImporter &n) {
  std::string text = n.stringAttr("mode", "nearest");
  auto mode = llvm::StringSwitch<std::optional<ResizeMode>>(text)
                  .Case("nearest", ResizeMode::nearest)
                  .Cases({"linear", "bilinear"}, ResizeMode::linear)
                  .Case("cubic", ResizeMode::cubic)
                  .Default(std::nullopt);
  if (!mode) {
    n.fail(llvm::formatv("mode '{0}' is unknown; allowed are nearest, linear and cubic", text));
  }
  return mode.value_or(ResizeMode::nearest);
}

ResizeCoord coordOf(NodeImporter &n) {
  std::string text = n.stringAttr("coordinate_transformation_mode", "half_pixel");
  auto coord = symbolizeResizeCoord(text);
  if (!coord) {
    n.fail(llvm::formatv("coordinate_transformation_mode '{0}' is unknown", text));
  }
  return coord.value_or(ResizeCoord::half_pixel);
}

ResizeRound roundOf(NodeImporter &n) {
  std::string text = n.stringAttr("nearest_mode", "round_prefer_floor");
  auto round = symbolizeResizeRound(text);
  if (!round) {
    n.fail(llvm::formatv("nearest_mode '{0}' is unknown", text));
  }
  return round.value_or(ResizeRound::round_prefer_floor);
}

constexpr double kRunTime = std::numeric_limits<double>::quiet_NaN();

struct Target {
  llvm::SmallVector<Dim> sizes; ///< unknown where a run computes it, or where the dim is unknown and not resized
  Doubles scales;               ///< kRunTime where a run computes it
  Value scaleVector = {};       ///< the scales that a run computes, f64; null: they are the quotients of the sizes
  double rounding = 0;          ///< added to a computed size before it is rounded down
  int64_t most = 64;            ///< the least limit of a computed size

  bool isComplete() const {
    return llvm::none_of(scales, [](double scale) { return std::isnan(scale); }) &&
           llvm::none_of(llvm::zip(sizes, scales),
                         [](auto dim) { return std::get<0>(dim).isUnknown() && std::get<1>(dim) != 1.0; });
  }
};

/// Returns |dim| * |scale| as a size. It is an error if the size exceeds the limit for tensors.
int64_t scaledSize(NodeImporter &n, int64_t dim, double scale, double offset) {
  double size = std::floor(static_cast<double>(dim) * scale + offset);
  if (!(size >= 0 && size <= static_cast<double>(detail::kMaxTensorBytes))) {
    n.fail(llvm::formatv("scale {0:e} gives the size {1:e} for a dim of size {2}", scale, size, dim));
    return 0;
  }
  return static_cast<int64_t>(size);
}

/// Returns floor(|dim| * |scale|) for an expression and a scale that is a fraction of a power of two; else unknown.
Dim scaledOpenSize(Dim dim, double scale) {
  constexpr int64_t kDenominator = 1 << 10;
  double numerator = scale * kDenominator;
  bool isExact = numerator == std::floor(numerator) && numerator < static_cast<double>(int64_t(1) << 40);
  return isExact ? floorDiv(dim * static_cast<int64_t>(numerator), kDenominator) : Dim(mlir::ShapedType::kDynamic);
}

/// Returns |size| / |dim| if it is the same for all values of the symbols.
std::optional<double> constantRatio(Dim size, Dim dim) {
  if (size.isUnknown() || dim.isUnknown() || likelyOf(dim) == 0) {
    return std::nullopt;
  }
  int64_t divisor = std::gcd(likelyOf(size), likelyOf(dim));
  int64_t numerator = likelyOf(size) / divisor, denominator = likelyOf(dim) / divisor;
  return sameSize(size * denominator, dim * numerator)
             ? std::optional(static_cast<double>(numerator) / static_cast<double>(denominator))
             : std::nullopt;
}

/// Computes sizes from scales as ONNX defines them: floor(dim * scale).
Target targetFromScales(NodeImporter &n, llvm::ArrayRef<Dim> shape, const Doubles &scales) {
  Target target;
  if (scales.size() != shape.size()) {
    n.fail(llvm::formatv("there are {0} scales for an input of rank {1}", scales.size(), shape.size()));
    return target;
  }
  for (auto [dim, scale] : llvm::zip_equal(shape, scales)) {
    if (!(scale > 0) || std::isinf(scale)) {
      n.fail(llvm::formatv("scale {0} is not positive", scale));
      return target;
    }
    Dim size = dim.isKnown()  ? Dim(scaledSize(n, dim.value(), scale, 0.0))
               : scale == 1.0 ? dim
                              : scaledOpenSize(dim, scale);
    if (size.isUnknown() && scale != 1.0 && (!dim.isSymbolic() || !n.bindsSizes())) {
      n.unsupported("a resized dim is open: fix it with --input_shapes");
      return target;
    }
    target.sizes.push_back(size);
    target.scales.push_back(scale);
  }
  return target;
}

/// Uses the scales that input |i| gives for |axes|.
Target targetFromRunTimeScales(NodeImporter &n, llvm::ArrayRef<Dim> shape, unsigned i, llvm::ArrayRef<int64_t> axes) {
  Target target{llvm::SmallVector<Dim>(shape), Doubles(shape.size(), 1.0)};
  mlir::Type f64 = n.b.getF64Type();
  Value given = n.cast(n.input(i), f64), ones = n.floatConstant(f64, {int64_t(shape.size())}, target.scales);
  if (countOf(given) != int64_t(axes.size())) {
    n.fail(llvm::formatv("there are {0} scales for {1} axes", countOf(given), axes.size()));
    return target;
  }
  target.scaleVector = spread(n, ones, n.intVector(axes), given);
  for (int64_t axis : axes) {
    target.sizes[axis] = mlir::ShapedType::kDynamic, target.scales[axis] = kRunTime;
  }
  return target;
}

/// Replaces the scales of |axes| by the smallest of them, or the largest, which a run computes.
void unifyRunTimeScales(NodeImporter &n, Target &target, llvm::ArrayRef<int64_t> axes, bool smallest) {
  Arithmetic f{n, n.b.getF64Type()};
  Value shape = shapeVector(n, n.input(0));
  llvm::SmallVector<Value> ratios;
  for (int64_t axis : axes) {
    Value size = n.cast(sizeVector(n, {target.sizes[axis]}), f.element);
    ratios.push_back(f.div(size, n.cast(f.at(shape, axis), f.element)));
    target.most = std::max(target.most, 2 * maxOf(target.sizes[axis]));
  }
  Value all = ratios.size() == 1 ? ratios.front() : n.create<ConcatOp>(ratios, 0);
  Value scale = f.reduce(all, smallest ? ReduceKind::min : ReduceKind::max);
  target.scaleVector = n.expandTo(scale, {Dim(int64_t(target.sizes.size()))}), target.rounding = 0.5;
  for (int64_t axis : axes) {
    target.sizes[axis] = mlir::ShapedType::kDynamic, target.scales[axis] = kRunTime;
  }
}

/// Uses the given sizes, or with keep_aspect_ratio_policy a single scale for all of |axes|.
Target targetFromSizes(NodeImporter &n, llvm::ArrayRef<Dim> shape, llvm::ArrayRef<Dim> sizes,
                       llvm::ArrayRef<int64_t> axes) {
  Target target;
  std::string policy = n.stringAttr("keep_aspect_ratio_policy", "stretch");
  if (sizes.size() != shape.size()) {
    n.fail(llvm::formatv("there are {0} sizes for an input of rank {1}", sizes.size(), shape.size()));
    return target;
  }
  for (auto [dim, size] : llvm::zip_equal(shape, sizes)) {
    auto ratio = dim.isKnown() && size.isKnown()
                     ? std::optional(static_cast<double>(size.value()) / static_cast<double>(dim.value()))
                     : constantRatio(size, dim);
    if (!ratio && (dim.isUnknown() || size.isUnknown())) {
      n.unsupported("sizes are given for an open dim: fix it with --input_shapes");
      return target;
    }
    target.sizes.push_back(size);
    target.scales.push_back(ratio.value_or(kRunTime));
  }
  if (policy == "stretch" || axes.empty()) {
    return target;
  }
  bool smallest = policy == "not_larger";
  if (!llvm::all_of(axes, [&](int64_t axis) { return shape[axis].isKnown() && sizes[axis].isKnown(); })) {
    unifyRunTimeScales(n, target, axes, smallest);
    return target;
  }
  double scale = target.scales[axes[0]];
  for (int64_t axis : axes) {
    scale = smallest ? std::min(scale, target.scales[axis]) : std::max(scale, target.scales[axis]);
  }
  for (int64_t axis : axes) {
    target.sizes[axis] = scaledSize(n, shape[axis].value(), scale, 0.5);
    target.scales[axis] = scale;
  }
  return target;
}

Interpolation interpolationOf(NodeImporter &n, ResizeMode mode, ResizeCoord coord, ResizeRound round) {
  return {mode,
          coord,
          round,
          n.floatAttr("cubic_coeff_a", -0.75),
          n.floatAttr("extrapolation_value", 0.0),
          n.intAttr("exclude_outside", 0) != 0,
          n.intAttr("antialias", 0) != 0};
}

/// Returns the dims that |target| resizes, with the sizes that a run computes bound to symbols.
llvm::SmallVector<ResizedDim> resizedDims(NodeImporter &n, const Target &target, Value roi) {
  Arithmetic f{n, n.b.getF64Type()};
  Value x = n.input(0), shape = shapeVector(n, x), sizes = n.cast(shape, f.element);
  auto from = NodeImporter::sizes(x);
  auto rank = int64_t(from.size());
  llvm::SmallVector<ResizedDim> dims;
  for (int64_t d = 0; d < rank && !n.failed(); ++d) {
    Dim to = target.sizes[d];
    double known = target.scales[d];
    if (!roi && known == 1.0 && (to.isUnknown() || sameSize(to, from[d]))) {
      continue;
    }
    Value own = f.at(sizes, d), scale = !std::isnan(known)   ? f.number(known)
                                        : target.scaleVector ? f.at(target.scaleVector, d)
                                                             : f.div(n.cast(sizeVector(n, {to}), f.element), own);
    if (to.isUnknown()) {
      double factor = std::isnan(known) ? 2.0 : known;
      bool isOuter = std::isnan(known) && rank > 2 && d < 2; // images and channels, which are rarely resized
      int64_t most =
          isOuter ? maxOf(from[d]) : std::max(target.most, int64_t(std::ceil(double(maxOf(from[d])) * factor)));
      Value count = n.create<FloorOp>(f.add(f.mul(own, scale), f.number(target.rounding)));
      to = n.bindCount(n.cast(count, n.b.getI64Type()), 0, d, most);
    }
    dims.push_back({d, to, scale, roi ? f.at(roi, d) : Value(), roi ? f.at(roi, rank + d) : Value()});
  }
  return dims;
}

/// Returns true if the lowering of |op| has positions and weights for all sizes.
bool hasTables(ResizeOp op) {
  Shape x = op.getX(), y = op.getY();
  return llvm::all_of(llvm::seq<size_t>(0, x.rank()), [&](size_t d) {
    bool isOpen = x[d].isSymbolic() || y[d].isSymbolic();
    return !isOpen || findRepetition(op, unsigned(d)) || (hasNeighbouringTaps(op) && minOf(x[d]) >= 1);
  });
}

/// Resizes by |target|. |roi| are the constant regions of all dims; |openRoi| those that a run computes, or null.
void emitResize(NodeImporter &n, const Target &target, const Interpolation &how, const Doubles &roi,
                Value openRoi = {}) {
  if (n.failed()) {
    return;
  }
  Value x = n.input(0);
  if (NodeImporter::hasSizes(x, target.sizes) && how.coord != ResizeCoord::tf_crop_and_resize &&
      llvm::all_of(target.scales, [](double s) { return s == 1.0; })) {
    n.setOutput(0, x);
    return;
  }
  if (target.isComplete() && !openRoi) {
    mlir::MLIRContext *context = n.b.getContext();
    SizeList sizes = makeSizeList(target.sizes, context);
    auto op = ResizeOp::create(n.b, n.loc, NodeImporter::placeholder(n.b), x, n.b.getDenseI64ArrayAttr(sizes.numbers),
                               n.b.getDenseF64ArrayAttr(target.scales), ResizeModeAttr::get(context, how.mode),
                               ResizeCoordAttr::get(context, how.coord), ResizeRoundAttr::get(context, how.round),
                               n.b.getF64FloatAttr(how.cubic), n.b.getBoolAttr(how.excludesOutside),
                               n.b.getF64FloatAttr(how.extrapolation), n.b.getDenseF64ArrayAttr(roi),
                               n.b.getBoolAttr(how.antialias));
    setDims(op, kDimsAttr, sizes.dims);
    Value y = n.finish(op).front();
    auto resized = n.failed() ? ResizeOp() : y.getDefiningOp<ResizeOp>();
    if (!resized || hasTables(resized)) {
      n.setOutput(0, y);
      return;
    }
    resized.erase();
  }
  if (!roi.empty() && !openRoi) {
    openRoi = n.floatConstant(n.b.getF64Type(), {int64_t(roi.size())}, roi);
  }
  n.setOutput(0, resizeByOps(n, x, resizedDims(n, target, openRoi), how));
}

/// Expands a list with one entry per axis in |axes| to all dims. The other entries are those of |fill|.
template <typename List>
List spread(NodeImporter &n, const List &values, llvm::ArrayRef<int64_t> axes, List all) {
  if (values.size() != axes.size()) {
    n.fail(llvm::formatv("a list has {0} entries for {1} axes", values.size(), axes.size()));
    return all;
  }
  for (auto [axis, value] : llvm::zip_equal(axes, values)) {
    all[axis] = value;
  }
  return all;
}

/// Returns the region that input 1 gives for |axes|, and the whole of the other dims: all starts, then all ends, f64.
Value runTimeRoi(NodeImporter &n, llvm::ArrayRef<int64_t> axes, int64_t rank) {
  Value given = n.cast(n.input(1), n.b.getF64Type());
  if (countOf(given) != 2 * int64_t(axes.size())) {
    n.fail(llvm::formatv("the region of interest has {0} entries; expected {1}", countOf(given), 2 * axes.size()));
    return given;
  }
  Doubles whole(2 * rank, 0.0);
  std::fill(whole.begin() + rank, whole.end(), 1.0);
  Ints places(axes);
  llvm::append_range(places, llvm::map_range(axes, [&](int64_t axis) { return axis + rank; }));
  return spread(n, n.floatConstant(n.b.getF64Type(), {2 * rank}, whole), n.intVector(places), given);
}

/// Resize 11 and newer: X, roi, scales, sizes. Since 18 also axes.
void resize(NodeImporter &n) {
  Value x = n.input(0);
  auto shape = NodeImporter::sizes(x);
  int64_t rank = NodeImporter::rank(x);
  Ints axes = n.normalizeAxes(n.intsAttr("axes"), rank);
  if (n.failed()) {
    return;
  }
  if (axes.empty()) {
    for (int64_t d = 0; d < rank; ++d) {
      axes.push_back(d);
    }
  }
  Target target;
  bool isOpen = isRunTime(n, 2);
  Doubles scales = n.hasInput(2) && !isOpen ? n.constantDoubles(2, "the list of scales") : Doubles();
  if (isOpen) {
    target = targetFromRunTimeScales(n, shape, 2, axes);
  } else if (!scales.empty() && n.hasInput(3) && NodeImporter::shape(n.input(3)) != llvm::ArrayRef<int64_t>{0}) {
    n.fail("scales and sizes are both given, but only one of them is allowed: omit the other input");
  } else if (!scales.empty()) {
    target = targetFromScales(n, shape, spread(n, scales, axes, Doubles(rank, 1.0)));
  } else if (n.hasInput(3)) {
    target = targetFromSizes(n, shape, spread(n, n.sizesInput(3, "the list of sizes"), axes, shape), axes);
  } else {
    n.fail("neither scales nor sizes are given");
  }
  ResizeCoord coord = coordOf(n);
  Doubles roi;
  Value openRoi;
  if (coord == ResizeCoord::tf_crop_and_resize && isRunTime(n, 1)) {
    openRoi = runTimeRoi(n, axes, rank);
  } else if (coord == ResizeCoord::tf_crop_and_resize) {
    Doubles given = n.constantDoubles(1, "the region of interest");
    roi.assign(2 * rank, 0.0);
    std::fill(roi.begin() + rank, roi.end(), 1.0);
    if (given.size() != 2 * axes.size()) {
      n.fail(llvm::formatv("the region of interest has {0} entries; expected {1}", given.size(), 2 * axes.size()));
      return;
    }
    for (auto [i, axis] : llvm::enumerate(axes)) {
      roi[axis] = given[i];
      roi[rank + axis] = given[axes.size() + i];
    }
  }
  emitResize(n, target, interpolationOf(n, modeOf(n), coord, roundOf(n)), roi, openRoi);
}

/// Upsample 7 (scales as attribute), Upsample 9 and Resize 10 (scales as input): coordinates are out / scale.
void upsample(NodeImporter &n) {
  auto shape = NodeImporter::sizes(n.input(0));
  Interpolation how = interpolationOf(n, modeOf(n), ResizeCoord::asymmetric, ResizeRound::floor);
  if (isRunTime(n, 1)) {
    Ints axes(shape.size());
    std::iota(axes.begin(), axes.end(), 0);
    emitResize(n, targetFromRunTimeScales(n, shape, 1, axes), how, {});
    return;
  }
  Doubles scales = n.hasInput(1) ? n.constantDoubles(1, "the list of scales") : n.floatsAttr("scales");
  emitResize(n, targetFromScales(n, shape, scales), how, {});
}

/// Upsample of com.microsoft.nchwc: integer scales; "nearest" repeats elements.
void blockedUpsample(NodeImporter &n) {
  n.allowOnly({"coordinate_transformation_mode", "mode", "scales"}, 1);
  Ints factors = n.intsAttr("scales");
  ResizeMode mode = modeOf(n);
  ResizeCoord coord = mode == ResizeMode::nearest ? ResizeCoord::asymmetric : coordOf(n);
  emitResize(n, targetFromScales(n, NodeImporter::sizes(n.input(0)), Doubles(factors.begin(), factors.end())),
             interpolationOf(n, mode, coord, ResizeRound::floor), {});
}

} // namespace

llvm::ArrayRef<HandlerEntry> resizeHandlers() {
  static const HandlerEntry entries[] = {
      {"", "Upsample", upsample},     {"", "Resize", upsample, 10},
      {"", "Resize", resize, 11},     {"com.microsoft.nchwc", "Upsample", blockedUpsample},
      {"", "GridSample", gridSample},
  };
  return entries;
}

} // namespace tessera::top::onnx_import
