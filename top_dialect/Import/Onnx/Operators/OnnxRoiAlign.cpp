//===- OnnxRoiAlign.cpp - Handler of RoiAlign -----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/NodeImporter.h"

#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

/// The pixels before and after the points of one spatial dim: i64 indices and f32 weights, [regions, points].
struct Taps {
  Value index[2];
  Value weight[2];
};

class RoiAligner {
public:
  explicit RoiAligner(NodeImporter &n) : n(n) {}

  void run() {
    x = n.input(0);
    rois = n.input(1);
    Value batch = n.input(2);
    for (Value value : {x, rois, batch}) {
      if (llvm::any_of(NodeImporter::shape(value), mlir::ShapedType::isDynamic)) {
        n.unsupported("needs static dims: fix them with --input_shapes");
      }
    }
    if (n.failed() || !readAttributes(batch)) {
      return;
    }
    regions = NodeImporter::dim(rois, 0);
    if (samples == 0) {
      setAdaptiveMeans(batch);
      return;
    }
    int64_t images = NodeImporter::dim(x, 0), channels = NodeImporter::dim(x, 1), height = NodeImporter::dim(x, 2),
            width = NodeImporter::dim(x, 3);
    int64_t rows = outHeight * samples, columns = outWidth * samples;
    Taps y = taps(1, height, outHeight), across = taps(0, width, outWidth);
    // Channels last, so that the channels of a point are contiguous.
    Value pixels = n.reshape(n.transpose(x, {0, 2, 3, 1}), {images * height * width, channels});
    Value first = n.create<MulOp>(n.cast(batch, n.b.getI64Type()), number(batch, height * width));
    first = n.reshape(first, {regions, 1, 1});
    Value sum;
    for (int i = 0; i < 2; ++i) {
      Value row = n.reshape(y.index[i], {regions, rows, 1});
      Value start = n.create<AddOp>(first, n.create<MulOp>(row, n.scalarLike(row, static_cast<double>(width))));
      for (int j = 0; j < 2; ++j) {
        Value place = n.create<AddOp>(start, n.reshape(across.index[j], {regions, 1, columns}));
        Value weight = n.create<MulOp>(n.reshape(y.weight[i], {regions, rows, 1, 1}),
                                       n.reshape(across.weight[j], {regions, 1, columns, 1}));
        Value part = n.create<MulOp>(n.create<GatherOp>(pixels, place, 0), weight);
        // The definition takes the maximum over the weighted pixels, not over the points.
        sum = !sum ? part : largest ? n.create<MaxOp>(sum, part) : n.create<AddOp>(sum, part);
      }
    }
    Value bins = n.reshape(sum, {regions, outHeight, samples, outWidth, samples, channels});
    bins = n.create<ReduceOp>(bins, largest ? ReduceKind::max : ReduceKind::mean, Ints{2, 4}, false);
    n.setOutput(0, n.transpose(bins, {0, 3, 1, 2}));
  }

private:
  bool readAttributes(Value batch) {
    std::string mode = n.stringAttr("mode", "avg");
    std::string origin =
        n.stringAttr("coordinate_transformation_mode", n.opset < 16 ? "output_half_pixel" : "half_pixel");
    outHeight = n.intAttr("output_height", 1);
    outWidth = n.intAttr("output_width", 1);
    samples = n.intAttr("sampling_ratio", 0);
    scale = n.floatAttr("spatial_scale", 1.0);
    largest = mode == "max";
    halfPixel = origin == "half_pixel";
    if ((mode != "avg" && mode != "max") || (!halfPixel && origin != "output_half_pixel")) {
      n.fail(llvm::formatv("mode '{0}' or coordinate_transformation_mode '{1}' is unknown", mode, origin));
    } else if (NodeImporter::rank(x) != 4 || !NodeImporter::elementType(x).isF32() || NodeImporter::rank(rois) != 2 ||
               NodeImporter::dim(rois, 1) != 4 || NodeImporter::elementType(rois) != NodeImporter::elementType(x) ||
               NodeImporter::rank(batch) != 1 || NodeImporter::dim(batch, 0) != NodeImporter::dim(rois, 0) ||
               outHeight < 1 || outWidth < 1 || samples < 0 || outHeight > 1024 || outWidth > 1024 || samples > 64) {
      n.fail("expected an input of rank 4, regions [count, 4], the batch entry of each, all floats of 32 bits, and "
             "sizes of 1 to 1024 with a sampling_ratio of 0 to 64");
    } else if (samples == 0 && largest) {
      n.unsupported(
          "mode 'max' with sampling_ratio 0 takes a number of points that depends on the size of each region, which is "
          "only known at run time; set sampling_ratio to a positive number");
    } else if (llvm::is_contained(NodeImporter::shape(x), 0) || llvm::is_contained(NodeImporter::shape(rois), 0)) {
      n.unsupported("an operand without elements");
    }
    return !n.failed();
  }

  Value number(Value like, int64_t value) { return n.scalar(n.b.getI64Type(), static_cast<double>(value)); }

  Value clip(Value value, double low, double high) {
    return n.create<ClipOp>(value, llvm::APFloat(low), llvm::APFloat(high));
  }

  Value column(int64_t d) { return n.create<SliceOp>(rois, Ints{0, d}, Ints{regions, 1}, Ints{1, 1}); }

  /// Sets the result for sampling_ratio 0, where the number of points in a bin depends on the size of the region. The
  /// mean is separable, so each bin is a product of the image with one row of weights per dim (weightsOfPixels).
  void setAdaptiveMeans(Value batch) {
    int64_t images = NodeImporter::dim(x, 0), channels = NodeImporter::dim(x, 1), height = NodeImporter::dim(x, 2),
            width = NodeImporter::dim(x, 3);
    Axis y = weightsOfPixels(1, height, outHeight), across = weightsOfPixels(0, width, outWidth);
    // Rows of images other than that of the region get weight 0.
    Value image = n.reshape(numbers(images), {1, images});
    Value own = n.create<CompareOp>(n.cast(n.reshape(batch, {regions, 1}), NodeImporter::elementType(x)), image,
                                    CompareKind::eq);
    own = n.reshape(n.cast(own, NodeImporter::elementType(x)), {regions, 1, images, 1});
    Value rows = n.create<MulOp>(n.reshape(y.weights, {regions, outHeight, 1, height}), own);
    Value pixels = n.reshape(n.transpose(x, {0, 2, 1, 3}), {images * height, channels * width});
    Value sums = n.create<MatMulOp>(n.reshape(rows, {regions * outHeight, images * height}), pixels, Value(), false,
                                    false, false, llvm::APFloat(-1.0));
    sums =
        n.create<MatMulOp>(n.reshape(sums, {regions, outHeight * channels, width}),
                           n.transpose(across.weights, {0, 2, 1}), Value(), false, false, false, llvm::APFloat(-1.0));
    Value points = n.create<MaxOp>(n.create<MulOp>(y.points, across.points), n.scalarLike(y.points, 1.0));
    sums = n.create<DivOp>(sums, n.reshape(points, {regions, 1, 1}));
    n.setOutput(0, n.transpose(n.reshape(sums, {regions, outHeight, channels, outWidth}), {0, 2, 1, 3}));
  }

  /// The weight of each pixel of a dim in each bin, [regions, bins, size], and the number of points of a bin, [regions,
  /// 1].
  struct Axis {
    Value weights, points;
  };

  /// A point has weight 1 - distance for each of the two pixels around it. A bin longer than a pixel has points more
  /// than 0.5 apart, so at most kNear of them are close enough to one pixel. A shorter bin has one point.
  Axis weightsOfPixels(int64_t d, int64_t size, int64_t bins) {
    constexpr int64_t kNear = 7;
    auto [start, length] = extent(d);
    Value bin = n.create<DivOp>(length, n.scalarLike(length, static_cast<double>(bins)));
    Value points = n.create<CeilOp>(bin);
    Value step = n.reshape(n.create<DivOp>(bin, points), {regions, 1, 1, 1});
    Value first = n.create<AddOp>(start, n.create<MulOp>(n.reshape(numbers(bins), {1, bins}), bin));
    first = n.reshape(first, {regions, bins, 1, 1});
    Value pixel = n.reshape(numbers(size), {1, 1, size, 1}), one = n.scalarLike(pixel, 1.0);
    // The first point that may be close enough, minus one to allow for rounding in the division.
    Value before = n.create<SubOp>(n.create<SubOp>(pixel, one), first);
    Value nearest = n.create<SubOp>(n.create<FloorOp>(n.create<DivOp>(before, step)), one);
    nearest = n.create<MaxOp>(nearest, n.scalarLike(nearest, 0.0));
    Value index = n.create<AddOp>(nearest, n.reshape(numbers(kNear), {1, 1, 1, kNear}));
    Value at = n.create<AddOp>(first, n.create<MulOp>(n.create<AddOp>(index, n.scalarLike(index, 0.5)), step));
    Value counts = n.create<AndOp>(isInside(at, size),
                                   n.create<CompareOp>(index, n.reshape(points, {regions, 1, 1, 1}), CompareKind::lt));
    Value distance = n.create<AbsOp>(n.create<SubOp>(clip(at, 0.0, static_cast<double>(size - 1)), pixel));
    Value weight = n.create<MaxOp>(n.create<SubOp>(one, distance), n.scalarLike(distance, 0.0));
    weight = n.create<WhereOp>(counts, weight, n.scalarLike(weight, 0.0));
    return {n.create<ReduceOp>(weight, ReduceKind::sum, Ints{3}, false),
            n.create<MaxOp>(points, n.scalarLike(points, 0.0))};
  }

  /// Returns 0, 1, 2, ... as floats of the regions' type.
  Value numbers(int64_t count) {
    llvm::SmallVector<double> values(count);
    std::iota(values.begin(), values.end(), 0.0);
    return n.floatConstant(NodeImporter::elementType(rois), {count}, values);
  }

  /// Returns whether points are inside. Points more than a pixel outside a dim of |size| pixels count as 0.
  Value isInside(Value at, int64_t size) {
    return n.create<AndOp>(n.create<CompareOp>(at, n.scalarLike(at, -1.0), CompareKind::ge),
                           n.create<CompareOp>(at, n.scalarLike(at, static_cast<double>(size)), CompareKind::le));
  }

  /// Returns begin and length of the regions in pixels, [regions, 1]. Coordinates d and d + 2 are the ends of a region.
  std::pair<Value, Value> extent(int64_t d) {
    Value factor = n.scalarLike(rois, scale), shift = n.scalarLike(rois, halfPixel ? 0.5 : 0.0);
    Value start = n.create<SubOp>(n.create<MulOp>(column(d), factor), shift);
    Value end = n.create<SubOp>(n.create<MulOp>(column(d + 2), factor), shift);
    Value length = n.create<SubOp>(end, start);
    return {start, halfPixel ? length : n.create<MaxOp>(length, n.scalarLike(length, 1.0))};
  }

  /// Returns the points in a dim of |size| pixels, |bins| per region.
  Taps taps(int64_t d, int64_t size, int64_t bins) {
    auto [start, length] = extent(d);
    llvm::SmallVector<double> places;
    for (int64_t bin = 0; bin < bins; ++bin) {
      for (int64_t i = 0; i < samples; ++i) {
        places.push_back((static_cast<double>(bin) + (static_cast<double>(i) + 0.5) / static_cast<double>(samples)) /
                         static_cast<double>(bins));
      }
    }
    Value steps = n.floatConstant(NodeImporter::elementType(rois), {1, bins * samples}, places);
    Value at = n.create<AddOp>(start, n.create<MulOp>(length, steps));
    auto last = static_cast<double>(size - 1);
    Value inside = isInside(at, size);
    at = clip(at, 0.0, last);
    Value low = n.create<FloorOp>(at);
    Value fraction = n.create<SubOp>(at, low), zero = n.scalarLike(at, 0.0);
    Value high = clip(n.create<AddOp>(low, n.scalarLike(low, 1.0)), 0.0, last);
    mlir::Type i64 = n.b.getI64Type();
    Value rest = n.create<SubOp>(n.scalarLike(fraction, 1.0), fraction);
    return {{n.cast(low, i64), n.cast(high, i64)},
            {n.create<WhereOp>(inside, rest, zero), n.create<WhereOp>(inside, fraction, zero)}};
  }

  NodeImporter &n;
  Value x, rois;
  int64_t regions = 0, outHeight = 0, outWidth = 0, samples = 0;
  double scale = 1;
  bool largest = false, halfPixel = true;
};

void roiAlign(NodeImporter &n) { RoiAligner(n).run(); }

} // namespace

llvm::ArrayRef<HandlerEntry> roiHandlers() {
  static const HandlerEntry entries[] = {{"", "RoiAlign", roiAlign, 10}};
  return entries;
}

} // namespace tessera::top::onnx_import
