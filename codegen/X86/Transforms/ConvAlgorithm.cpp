//===- ConvAlgorithm.cpp - Chooses the kernel of a convolution ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Transforms/ConvAlgorithm.h"

#include "codegen/X86/Transforms/RegisterTiles.h"
#include "codegen/X86/X86Model.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/TensorTypes.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::x86 {

bool isByte(Type type) { return type.isInteger(8); }

bool isIntegerOperand(Type type) { return isByte(type) || type.isSignlessInteger(16); }

bool hasTileTypes(Value x, Type w, Value bias, Value y) {
  Type xElement = typeOf(x).getElementType();
  auto isTileFloat = [](Type type) { return type.isF32() || device::isNarrowFloat(type); };
  bool integers = isIntegerOperand(xElement), floats = isTileFloat(xElement);
  bool signedBytes = isByte(w) && !w.isUnsignedInteger();
  bool fits =
      !bias || (integers ? typeOf(bias).getElementType().isSignlessInteger(32) : typeOf(bias).getElementType().isF32());
  return fits && (integers ? signedBytes : floats && isTileFloat(w)) &&
         device::isEpilogueElement(typeOf(y).getElementType());
}

bool hasIntegerWeights(Operation *op) {
  auto conv = dyn_cast<device::ConvOp>(op);
  Value x = op->getOperand(0), w = op->getOperand(1);
  return (conv || isa<device::MatMulOp>(op)) && isa<FloatType>(typeOf(x).getElementType()) &&
         isByte(typeOf(w).getElementType());
}

int64_t groupsToMerge(device::ConvOp conv) {
  ConvWeightDims d = weightDims(conv);
  int64_t groupOc = d.oc / d.groups;
  for (int64_t merge = 1; merge <= d.groups; ++merge) {
    bool whole = merge * d.groupC % kBlock == 0 && merge * groupOc % kBlock == 0;
    if (d.groups % merge == 0 && (whole || merge == d.groups)) {
      // Merged groups multiply zeros, which pays off up to some width.
      return merge <= 2 * kBlock ? merge : 0;
    }
  }
  return 0;
}

/// Returns the number of elements of x that a K step of a register tile multiplies.
static int64_t elementsPerStep(device::ConvOp conv, PackingTarget target) {
  Type x = typeOf(conv.getX()).getElementType(), w = typeOf(conv.getW()).getElementType();
  return isByte(x) ? 4 : isIntegerOperand(x) || hasBf16Dots(x, w, target) ? 2 : 1;
}

/// Return the rows and columns of the result at the likely sizes, at least 1.
static int64_t likelyRows(device::ConvOp conv) { return std::max<int64_t>(1, likelyOf(Shape(conv.getY())[2])); }
static int64_t likelyColumns(device::ConvOp conv) { return std::max<int64_t>(1, likelyOf(Shape(conv.getY())[3])); }

bool hasOpenPlanes(device::ConvOp conv) {
  return !Shape(conv.getX()).dropFront().isKnown() || !Shape(conv.getY()).dropFront().isKnown();
}

/// Returns the convolution as a matmul of positions and channels.
static TiledContraction directContraction(device::ConvOp conv, PackingTarget target) {
  ConvWeightDims d = weightDims(conv);
  int64_t oh = likelyRows(conv), ow = likelyColumns(conv);
  bool flat = d.kh == 1 && d.kw == 1 && llvm::all_of(conv.getStrides(), [](int64_t s) { return s == 1; }) &&
              llvm::all_of(conv.getPads(), [](int64_t p) { return p == 0; });
  int64_t products = d.groupC * d.kh * d.kw, perStep = elementsPerStep(conv, target);
  bool isSlow =
      target.amx && hasBf16Dots(typeOf(conv.getX()).getElementType(), typeOf(conv.getW()).getElementType(), target);
  return {flat ? 1 : oh, flat ? oh * ow : ow, int64_t(llvm::divideCeil(products, perStep)), d.oc / d.groups,
          isSlow ? kPairSlowdownBesideAmx : 1};
}

static TiledContraction winogradContraction(device::ConvOp conv, int64_t tile) {
  ConvWeightDims d = weightDims(conv);
  int64_t tiles = llvm::divideCeil(likelyRows(conv), tile) * llvm::divideCeil(likelyColumns(conv), tile);
  return {1, tiles, d.groupC, d.oc};
}

int64_t choosePanelBlocks(device::ConvOp conv, ConvChoice choice, PackingTarget target) {
  switch (choice.algorithm) {
  case ConvAlgorithm::direct:
    return choosePanelBlocks(target.vectorBytes, directContraction(conv, target));
  case ConvAlgorithm::winograd:
    return choosePanelBlocks(target.vectorBytes, winogradContraction(conv, choice.outputTile));
  case ConvAlgorithm::depthwise:
    break;
  }
  return 1;
}

/// Returns the cycles on AMX tiles for all images.
static double matrixCycles(device::ConvOp conv, TiledContraction contraction, KSplit chunks) {
  RankedTensorType x = typeOf(conv.getX());
  int64_t bytes =
      x.getDimSize(1) / conv.getGroups() * x.getDimSize(2) * x.getDimSize(3) * device::elementBytes(x.getElementType());
  return amxTileCycles(contraction, chunks.count * tileProducts(x.getElementType()), bytes);
}

std::optional<KSplit> amxTilesOf(device::ConvOp conv, PackedOrder order, PackingTarget target) {
  Type x = typeOf(conv.getX()).getElementType(), w = typeOf(conv.getW()).getElementType();
  bool integers = isByte(x) || (isIntegerOperand(x) && order == PackedOrder::channels_last);
  if (!target.amx || hasOpenPlanes(conv) || (!integers && !hasBf16Dots(x, w, target))) {
    return std::nullopt;
  }
  ConvWeightDims d = weightDims(conv);
  KSplit chunks = chunksOfTaps(order, d.groupC, integers ? 1 : 2, d.kh, d.kw, conv.getDilations().back() == 1);
  TiledContraction contraction = directContraction(conv, target);
  int64_t panel = choosePanelBlocks(target.vectorBytes, contraction);
  bool faster =
      chunks.count && matrixCycles(conv, contraction, chunks) < tileCycles(target.vectorBytes, panel, contraction);
  return faster ? std::optional(chunks) : std::nullopt;
}

/// Returns the cycles of one image. Weights arrive from beyond L2.
static double directCycles(device::ConvOp conv, PackingTarget target) {
  TiledContraction contraction = directContraction(conv, target);
  int64_t panel = choosePanelBlocks(target.vectorBytes, contraction);
  double weights = 4.0 * contraction.steps * contraction.columns;
  if (std::optional<KSplit> chunks = amxTilesOf(conv, PackedOrder::channels_last, target)) {
    return std::max(matrixCycles(conv, contraction, *chunks), weights / kCore.streamBytes);
  }
  return std::max(tileCycles(target.vectorBytes, panel, contraction), weights / kCore.streamBytes);
}

static double winogradCycles(device::ConvOp conv, int64_t vectorBytes, int64_t tile) {
  ConvWeightDims d = weightDims(conv);
  TiledContraction contraction = winogradContraction(conv, tile);
  double points = (tile + 2) * (tile + 2), vectors = 64.0 / vectorBytes;
  double products = points * tileCycles(vectorBytes, choosePanelBlocks(vectorBytes, contraction), contraction);
  double weights = points * 4.0 * d.groupC * llvm::alignTo(d.oc, kBlock);
  // The loads, arithmetic and stores of both transforms, measured per tile and block.
  double tiles = contraction.rowsPerRun, perTile = tile == 4 ? 300 : 110;
  double transforms = tiles * perTile * vectors * (llvm::divideCeil(d.groupC, kBlock) + llvm::divideCeil(d.oc, kBlock));
  // Streaming the weights overlaps only partly with the arithmetic.
  return products + transforms + 0.6 * weights / kCore.streamBytes;
}

std::optional<ConvChoice> chooseConvAlgorithm(device::ConvOp conv, PackingTarget target, bool winograd) {
  RankedTensorType x = typeOf(conv.getX()), y = typeOf(conv.getY());
  bool integers = isIntegerOperand(x.getElementType());
  // A float x multiplies integer weights as floats.
  bool scaled = hasIntegerWeights(conv);
  Type w = scaled ? Type(Float32Type::get(conv.getContext())) : typeOf(conv.getW()).getElementType();
  // The kernels support any number of images, known at run time or not.
  if (x.getRank() != 4 || !Shape(x).isDetermined() || !Shape(y).isDetermined() || !Shape(x)[1].isKnown() ||
      !sameSize(Shape(x)[0], Shape(y)[0]) || !hasTileTypes(conv.getX(), w, conv.getBias(), conv.getY())) {
    return std::nullopt;
  }
  ConvWeightDims d = weightDims(conv);
  if (d.groups > 1 && d.groupC == 1 && d.oc == d.groups) {
    // Without VNNI, sums of bytes are computed in f32, which is exact below 2^24.
    constexpr int64_t kMostTaps = (1 << 24) / (255 * 128);
    return isByte(x.getElementType()) && d.kh * d.kw > kMostTaps ? ConvChoice() : ConvChoice{ConvAlgorithm::depthwise};
  }
  if (groupsToMerge(conv) != 1) {
    return std::nullopt;
  }
  ConvChoice best{ConvAlgorithm::direct};
  auto ones = [](ArrayRef<int64_t> values) { return llvm::all_of(values, [](int64_t v) { return v == 1; }); };
  if (!winograd || integers || scaled || d.kh != 3 || d.kw != 3 || d.groups != 1 || !ones(conv.getStrides()) ||
      !ones(conv.getDilations()) || d.groupC < kBlock || d.oc < kBlock) {
    return best;
  }
  double cycles = directCycles(conv, target);
  // Storing transformed weights in 16 bits multiplies their rounding error by 6 to 12 for F(4 x 4), by 1.6 for F(2 x
  // 2).
  int64_t largest = device::isNarrowFloat(w) ? 2 : 4;
  for (int64_t tile = 2; tile <= largest; tile += 2) {
    // Require a clear gain, because Winograd rounds more coarsely.
    double other = winogradCycles(conv, target.vectorBytes, tile) * 1.1;
    if (other < cycles) {
      cycles = other;
      best = {ConvAlgorithm::winograd, tile};
    }
  }
  return best;
}

} // namespace tessera::x86
