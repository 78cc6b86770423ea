//===- OnnxPad.cpp - Handlers of pads, repeats and block moves ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/NodeImporter.h"
#include "top_dialect/Import/Onnx/Shapes/RunTimeShapes.h"
#include "top_dialect/Import/Onnx/Sizes/ShapeArithmetic.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

using Sizes = llvm::SmallVector<Dim>;

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

llvm::ArrayRef<HandlerEntry> padHandlers() {
  static const HandlerEntry entries[] = {
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
