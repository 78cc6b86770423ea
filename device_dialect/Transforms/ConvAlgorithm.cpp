//===- ConvAlgorithm.cpp - Which kernel a convolution gets ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Transforms/ConvAlgorithm.h"

#include "device_dialect/Transforms/RegisterTiles.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::device {

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

ConvWeightDims weightDims(ConvOp conv) {
  ArrayRef<int64_t> dims = conv.getPacked() ? *conv.getWeightShape() : typeOf(conv.getW()).getShape();
  return {dims[0], dims[1], dims[2], dims[3], static_cast<int64_t>(conv.getGroups())};
}

int64_t groupsToMerge(ConvOp conv) {
  ConvWeightDims d = weightDims(conv);
  int64_t groupOc = d.oc / d.groups;
  for (int64_t merge = 1; merge <= d.groups; ++merge) {
    bool whole = merge * d.groupC % kChannelBlock == 0 && merge * groupOc % kChannelBlock == 0;
    if (d.groups % merge == 0 && (whole || merge == d.groups)) {
      // Merged groups multiply zeros: worth it up to a point.
      return merge <= 2 * kChannelBlock ? merge : 0;
    }
  }
  return 0;
}

bool isSimpleExtra(RankedTensorType extra, RankedTensorType y) {
  if (!extra.getElementType().isF32()) {
    return false;
  }
  if (extra.getNumElements() == 1 || extra.getShape() == y.getShape()) {
    return true;
  }
  // [C, 1, 1], [1, C, 1, 1]: aligned at the right.
  ArrayRef<int64_t> dims = extra.getShape();
  for (auto [i, dim] : llvm::enumerate(dims)) {
    int64_t at = y.getRank() - dims.size() + i;
    if (dim != (at == 1 ? y.getDimSize(1) : 1)) {
      return false;
    }
  }
  return static_cast<int64_t>(dims.size()) >= y.getRank() - 1;
}

bool isSimpleMatrixExtra(RankedTensorType extra, RankedTensorType y) {
  ArrayRef<int64_t> dims = extra.getShape(), result = y.getShape();
  if (!extra.getElementType().isF32()) {
    return false;
  }
  if (extra.getNumElements() == 1 || dims == result) {
    return true;
  }
  bool column = dims.back() == result.back() && llvm::all_of(dims.drop_back(), [](int64_t dim) { return dim == 1; });
  bool row = dims.back() == 1 && dims.drop_back() == result.drop_back();
  return column || row;
}

/// The convolution as a product of positions and channels.
static TiledProduct directProduct(ConvOp conv) {
  ConvWeightDims d = weightDims(conv);
  ArrayRef<int64_t> y = typeOf(conv.getY()).getShape();
  bool flat = d.kh == 1 && d.kw == 1 && llvm::all_of(conv.getStrides(), [](int64_t s) { return s == 1; }) &&
              llvm::all_of(conv.getPads(), [](int64_t p) { return p == 0; });
  return {flat ? 1 : y[2], flat ? y[2] * y[3] : y[3], d.groupC * d.kh * d.kw, d.oc / d.groups};
}

static TiledProduct winogradProduct(ConvOp conv, int64_t tile) {
  ConvWeightDims d = weightDims(conv);
  ArrayRef<int64_t> y = typeOf(conv.getY()).getShape();
  return {1, int64_t(llvm::divideCeil(y[2], tile) * llvm::divideCeil(y[3], tile)), d.groupC, d.oc};
}

int64_t choosePanelBlocks(ConvOp conv, ConvChoice choice, int64_t vectorBytes) {
  switch (choice.algorithm) {
  case ConvAlgorithm::direct:
    return choosePanelBlocks(vectorBytes, directProduct(conv));
  case ConvAlgorithm::winograd:
    return choosePanelBlocks(vectorBytes, winogradProduct(conv, choice.winogradTile));
  default:
    return 1;
  }
}

/// Cycles of one image, weights coming from beyond L2 at kStreamBytes a cycle.
static double directCycles(ConvOp conv, int64_t vectorBytes) {
  constexpr double kStreamBytes = 8;
  TiledProduct product = directProduct(conv);
  int64_t panel = choosePanelBlocks(vectorBytes, product);
  double weights = 4.0 * product.steps * product.columns;
  return std::max(tileCycles(vectorBytes, panel, product), weights / kStreamBytes);
}

static double winogradCycles(ConvOp conv, int64_t vectorBytes, int64_t tile) {
  constexpr double kStreamBytes = 8;
  ConvWeightDims d = weightDims(conv);
  TiledProduct product = winogradProduct(conv, tile);
  double points = (tile + 2) * (tile + 2), vectors = 64.0 / vectorBytes;
  double products = points * tileCycles(vectorBytes, choosePanelBlocks(vectorBytes, product), product);
  double weights = points * 4.0 * d.groupC * llvm::alignTo(d.oc, kChannelBlock);
  // Loads, arithmetic and stores of both transforms, per tile and block, measured.
  double tiles = product.rowsPerRun, perTile = tile == 4 ? 300 : 110;
  double transforms = tiles * perTile * vectors *
                      (llvm::divideCeil(d.groupC, kChannelBlock) + llvm::divideCeil(d.oc, kChannelBlock));
  // Streaming runs beside the arithmetic only in part.
  return products + transforms + 0.6 * weights / kStreamBytes;
}

ConvChoice chooseConvAlgorithm(ConvOp conv, int64_t vectorBytes, bool winograd) {
  RankedTensorType x = typeOf(conv.getX()), y = typeOf(conv.getY());
  if (x.getRank() != 4 || !x.getElementType().isF32() || !y.getElementType().isF32() || !x.hasStaticShape() ||
      !y.hasStaticShape() || (conv.getBias() && !typeOf(conv.getBias()).getElementType().isF32()) ||
      (!conv.getPacked() && !typeOf(conv.getW()).getElementType().isF32())) {
    return {};
  }
  ConvWeightDims d = weightDims(conv);
  if (d.groups > 1 && d.groupC == 1 && d.oc == d.groups) {
    return {ConvAlgorithm::depthwise};
  }
  if (groupsToMerge(conv) != 1) {
    return {};
  }
  ConvChoice best{ConvAlgorithm::direct};
  auto ones = [](ArrayRef<int64_t> values) { return llvm::all_of(values, [](int64_t v) { return v == 1; }); };
  if (!winograd || d.kh != 3 || d.kw != 3 || d.groups != 1 || !ones(conv.getStrides()) || !ones(conv.getDilations()) ||
      d.groupC < kChannelBlock || d.oc < kChannelBlock) {
    return best;
  }
  double cycles = directCycles(conv, vectorBytes);
  for (int64_t tile : {2, 4}) {
    // The gain has to be clear: Winograd rounds more coarsely.
    double other = winogradCycles(conv, vectorBytes, tile) * 1.1;
    if (other < cycles) {
      cycles = other;
      best = {ConvAlgorithm::winograd, tile};
    }
  }
  return best;
}

} // namespace tessera::device
