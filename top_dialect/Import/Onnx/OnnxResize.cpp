//===- OnnxResize.cpp - Handlers of Resize and Upsample ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/Import/Onnx/NodeImporter.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

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
    n.fail(llvm::formatv("mode '{0}' is unknown; it is nearest, linear or cubic", text));
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

struct Target {
  Ints sizes;
  Doubles scales;
};

/// |dim| * |scale| as a size; an error beyond any tensor's.
int64_t scaledSize(NodeImporter &n, int64_t dim, double scale, double offset) {
  double size = std::floor(static_cast<double>(dim) * scale + offset);
  if (!(size >= 0 && size <= static_cast<double>(detail::kMaxTensorBytes))) {
    n.fail(llvm::formatv("scale {0:e} makes {1:e} of a dim of size {2}", scale, size, dim));
    return 0;
  }
  return static_cast<int64_t>(size);
}

/// Sizes by scales: floor(dim * scale), as ONNX defines it.
Target targetFromScales(NodeImporter &n, llvm::ArrayRef<int64_t> shape, const Doubles &scales) {
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
    if (mlir::ShapedType::isDynamic(dim) && scale != 1.0) {
      n.unsupported("a resized dim is open: fix it with --input_shapes");
      return target;
    }
    target.sizes.push_back(mlir::ShapedType::isDynamic(dim) ? -1 : scaledSize(n, dim, scale, 0.0));
    target.scales.push_back(scale);
  }
  return target;
}

/// Sizes as given, or by keep_aspect_ratio_policy one scale for all of |axes|.
Target targetFromSizes(NodeImporter &n, llvm::ArrayRef<int64_t> shape, const Ints &sizes, llvm::ArrayRef<int64_t> axes) {
  Target target;
  std::string policy = n.stringAttr("keep_aspect_ratio_policy", "stretch");
  if (sizes.size() != shape.size()) {
    n.fail(llvm::formatv("there are {0} sizes for an input of rank {1}", sizes.size(), shape.size()));
    return target;
  }
  for (auto [dim, size] : llvm::zip_equal(shape, sizes)) {
    if (mlir::ShapedType::isDynamic(dim)) {
      n.unsupported("sizes are given for an open dim: fix it with --input_shapes");
      return target;
    }
    target.sizes.push_back(size);
    target.scales.push_back(static_cast<double>(size) / static_cast<double>(dim));
  }
  if (policy == "stretch" || axes.empty()) {
    return target;
  }
  bool smallest = policy == "not_larger";
  double scale = target.scales[axes[0]];
  for (int64_t axis : axes) {
    scale = smallest ? std::min(scale, target.scales[axis]) : std::max(scale, target.scales[axis]);
  }
  for (int64_t axis : axes) {
    target.sizes[axis] = scaledSize(n, shape[axis], scale, 0.5);
    target.scales[axis] = scale;
  }
  return target;
}

void emitResize(NodeImporter &n, const Target &target, ResizeMode mode, ResizeCoord coord, ResizeRound round, const Doubles &roi) {
  if (n.failed()) {
    return;
  }
  Value x = n.input(0);
  bool antialias = n.intAttr("antialias", 0) != 0;
  if (NodeImporter::shape(x) == llvm::ArrayRef<int64_t>(target.sizes) && coord != ResizeCoord::tf_crop_and_resize &&
      llvm::all_of(target.scales, [](double s) { return s == 1.0; })) {
    n.setOutput(0, x);
    return;
  }
  n.setOutput(0, n.create<ResizeOp>(x, n.b.getDenseI64ArrayAttr(target.sizes), n.b.getDenseF64ArrayAttr(target.scales),
                                    ResizeModeAttr::get(n.b.getContext(), mode), ResizeCoordAttr::get(n.b.getContext(), coord),
                                    ResizeRoundAttr::get(n.b.getContext(), round),
                                    n.b.getF64FloatAttr(n.floatAttr("cubic_coeff_a", -0.75)),
                                    n.b.getBoolAttr(n.intAttr("exclude_outside", 0) != 0),
                                    n.b.getF64FloatAttr(n.floatAttr("extrapolation_value", 0.0)), n.b.getDenseF64ArrayAttr(roi),
                                    n.b.getBoolAttr(antialias)));
}

/// Entries for |axes| of a list of rank entries, the others |fill|.
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

/// Resize 11 and newer: X, roi, scales, sizes; axes since 18.
void resize(NodeImporter &n) {
  Value x = n.input(0);
  auto shape = NodeImporter::shape(x);
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
  Doubles scales = n.hasInput(2) ? n.constantDoubles(2, "the list of scales") : Doubles();
  if (!scales.empty()) {
    target = targetFromScales(n, shape, spread(n, scales, axes, Doubles(rank, 1.0)));
  } else if (n.hasInput(3)) {
    target = targetFromSizes(n, shape, spread(n, n.constantInts(3, "the list of sizes"), axes, Ints(shape)), axes);
  } else {
    n.fail("neither scales nor sizes are given");
  }
  ResizeCoord coord = coordOf(n);
  Doubles roi;
  if (coord == ResizeCoord::tf_crop_and_resize) {
    Doubles given = n.constantDoubles(1, "the region of interest");
    roi.assign(2 * rank, 0.0);
    std::fill(roi.begin() + rank, roi.end(), 1.0);
    if (given.size() != 2 * axes.size()) {
      n.fail(llvm::formatv("the region of interest has {0} entries; {1} are wanted", given.size(), 2 * axes.size()));
      return;
    }
    for (auto [i, axis] : llvm::enumerate(axes)) {
      roi[axis] = given[i];
      roi[rank + axis] = given[axes.size() + i];
    }
  }
  emitResize(n, target, modeOf(n), coord, roundOf(n), roi);
}

/// Upsample 7 (scales attribute), 9 and Resize 10 (scales input): coordinates are out / scale.
void upsample(NodeImporter &n) {
  Value x = n.input(0);
  Doubles scales = n.hasInput(1) ? n.constantDoubles(1, "the list of scales") : n.floatsAttr("scales");
  ResizeMode mode = modeOf(n);
  emitResize(n, targetFromScales(n, NodeImporter::shape(x), scales), mode, ResizeCoord::asymmetric, ResizeRound::floor, {});
}

} // namespace

llvm::ArrayRef<HandlerEntry> resizeHandlers() {
  static const HandlerEntry entries[] = {
      {"", "Upsample", upsample},
      {"", "Resize", upsample, 10},
      {"", "Resize", resize, 11},
  };
  return entries;
}

} // namespace tessera::top::onnx_import
