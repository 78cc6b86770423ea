//===- ConvAlgorithm.cpp - Which kernel a convolution gets ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Transforms/ConvAlgorithm.h"

#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/RegisterTiles.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::device {

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

bool isByte(Type type) { return type.isInteger(8); }

bool isIntegerOperand(Type type) { return isByte(type) || type.isSignlessInteger(16); }

ArrayRef<PackedForm> packedForms(Type x) {
  static constexpr PackedForm bytes[] = {PackedForm::Quads, PackedForm::Pairs}, words[] = {PackedForm::Words};
  return isByte(x) ? ArrayRef(bytes) : ArrayRef(words);
}

bool hasTileTypes(Value x, Type w, Value bias, Value y) {
  Type xElement = typeOf(x).getElementType();
  auto isTileFloat = [](Type type) { return type.isF32() || isNarrowFloat(type); };
  bool integers = isIntegerOperand(xElement), floats = isTileFloat(xElement);
  bool signedBytes = isByte(w) && !w.isUnsignedInteger();
  bool fits =
      !bias || (integers ? typeOf(bias).getElementType().isSignlessInteger(32) : typeOf(bias).getElementType().isF32());
  return fits && (integers ? signedBytes : floats && isTileFloat(w)) && isEpilogueElement(typeOf(y).getElementType());
}

bool hasIntegerWeights(Operation *op) {
  auto conv = dyn_cast<ConvOp>(op);
  Value x = op->getOperand(0), w = op->getOperand(1);
  return (conv || isa<MatMulOp>(op)) && isa<FloatType>(typeOf(x).getElementType()) &&
         isByte(typeOf(w).getElementType());
}

IntegerPanels integerPanels(ConvOp conv) {
  return integerPanelsOfConv(weightDims(conv), conv.getPanelBlocks().value_or(1), isBlocked(conv.getX().getType()),
                             hasDilatedRows(conv), conv.getWeightBits() ? conv.getWeightBits() : 8,
                             conv.getWeightGroup());
}

IntegerPanels integerPanels(MatMulOp matmul) {
  ArrayRef<int64_t> shape = matmul.getPacked() ? *matmul.getWeightShape() : typeOf(matmul.getB()).getShape();
  int64_t k = shape[shape.size() - 2], n = shape.back();
  if (matmul.getTransB()) {
    std::swap(k, n);
  }
  return integerPanelsOfMatMul(k, n, matmul.getPanelBlocks().value_or(1),
                               matmul.getWeightBits() ? matmul.getWeightBits() : 8, matmul.getWeightGroup());
}

bool hasDilatedRows(ConvOp conv) { return conv.getDilations().back() != 1; }

SmallVector<int64_t> packedMatMulCounts(Type a, int64_t k, int64_t n) {
  if (!isIntegerOperand(a)) {
    return {packedMatMulElements(k, n)};
  }
  return llvm::map_to_vector(packedForms(a), [&](PackedForm form) { return packedMatMulBytes8(k, n, form); });
}

SmallVector<int64_t> packedWeightElements(ConvOp conv) {
  ConvWeightDims dims = weightDims(conv);
  Type x = typeOf(conv.getX()).getElementType();
  if (hasIntegerWeights(conv)) {
    bool direct = conv.getAlgorithm() == ConvAlgorithm::direct;
    return {direct ? integerPanels(conv).bytes() : packedDepthwiseElements(dims)};
  }
  switch (conv.getAlgorithm()) {
  case ConvAlgorithm::direct: {
    if (!isIntegerOperand(x)) {
      return {packedConvElements(dims)};
    }
    return llvm::map_to_vector(packedForms(x), [&](PackedForm form) {
      return packedConvBytes8(dims, form, isBlocked(conv.getX().getType()), hasDilatedRows(conv));
    });
  }
  case ConvAlgorithm::winograd:
    return {packedWinogradElements(dims, 2), packedWinogradElements(dims, 4)};
  case ConvAlgorithm::depthwise: {
    if (!isIntegerOperand(x)) {
      return {packedDepthwiseElements(dims)};
    }
    int64_t stride = conv.getStrides().back();
    return {packedDepthwiseBytes8(dims, stride, false), packedDepthwiseBytes8(dims, stride, true)};
  }
  case ConvAlgorithm::generic:
    break;
  }
  return {};
}

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
  if (!isEpilogueElement(extra.getElementType())) {
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
  if (!isEpilogueElement(extra.getElementType())) {
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
  int64_t products = d.groupC * d.kh * d.kw, perStep = elementsPerStep(typeOf(conv.getX()).getElementType());
  return {flat ? 1 : y[2], flat ? y[2] * y[3] : y[3], int64_t(llvm::divideCeil(products, perStep)), d.oc / d.groups};
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
  double transforms =
      tiles * perTile * vectors * (llvm::divideCeil(d.groupC, kChannelBlock) + llvm::divideCeil(d.oc, kChannelBlock));
  // Streaming runs beside the arithmetic only in part.
  return products + transforms + 0.6 * weights / kStreamBytes;
}

ConvChoice chooseConvAlgorithm(ConvOp conv, int64_t vectorBytes, bool winograd) {
  RankedTensorType x = typeOf(conv.getX()), y = typeOf(conv.getY());
  // Packed weights need not be of the logical ones' type: they were taken once.
  bool integers = isIntegerOperand(x.getElementType());
  Type logical = integers ? Type(IntegerType::get(conv.getContext(), 8)) : Float32Type::get(conv.getContext());
  // Integer weights of a float x are multiplied as floats.
  bool scaled = hasIntegerWeights(conv);
  Type w = conv.getPacked() || scaled ? logical : typeOf(conv.getW()).getElementType();
  if (x.getRank() != 4 || !x.hasStaticShape() || !y.hasStaticShape() ||
      !hasTileTypes(conv.getX(), w, conv.getBias(), conv.getY())) {
    return {};
  }
  ConvWeightDims d = weightDims(conv);
  if (d.groups > 1 && d.groupC == 1 && d.oc == d.groups) {
    // Without VNNI the sums of bytes are kept in f32: exact below 2^24.
    constexpr int64_t kMostTaps = (1 << 24) / (255 * 128);
    return isByte(x.getElementType()) && d.kh * d.kw > kMostTaps ? ConvChoice() : ConvChoice{ConvAlgorithm::depthwise};
  }
  if (groupsToMerge(conv) != 1) {
    return {};
  }
  ConvChoice best{ConvAlgorithm::direct};
  auto ones = [](ArrayRef<int64_t> values) { return llvm::all_of(values, [](int64_t v) { return v == 1; }); };
  if (!winograd || integers || scaled || d.kh != 3 || d.kw != 3 || d.groups != 1 || !ones(conv.getStrides()) ||
      !ones(conv.getDilations()) || d.groupC < kChannelBlock || d.oc < kChannelBlock) {
    return best;
  }
  double cycles = directCycles(conv, vectorBytes);
  // F(4 x 4) enlarges what is lost by storing transformed weights in 16 bits 6 to 12 times, F(2 x 2) 1.6 times.
  int64_t largest = isNarrowFloat(w) ? 2 : 4;
  for (int64_t tile = 2; tile <= largest; tile += 2) {
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
