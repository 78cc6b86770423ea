//===- ChoosePacking.cpp - Chooses the packing of an op's weights ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Transforms/ChoosePacking.h"

#include "codegen/X86/Transforms/ConvAlgorithm.h"
#include "codegen/X86/Transforms/RegisterTiles.h"
#include "codegen/X86/Transforms/WeightPacking.h"
#include "device_dialect/IR/Exact.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/TensorTypes.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::x86 {

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

/// Returns the K step of a register tile or depthwise kernel for constant |weights| and elements of type |x|. |pairs|:
/// elements of x that are consecutive in K are contiguous in memory.
static PackedStep stepOf(Type x, const top::TensorData &weights, PackingTarget target, bool pairs) {
  Type w = weights.type.getElementType();
  if (pairs && hasBf16Dots(x, w, target)) {
    return PackedStep::bf16x2;
  }
  if (isByte(x)) {
    return target.byteDots ? PackedStep::i8x4 : PackedStep::i16x4;
  }
  if (isIntegerOperand(x)) {
    return PackedStep::i16x2;
  }
  if (isByte(w)) {
    auto isNibble = [](int8_t value) { return value >= -8 && value <= 7; };
    return llvm::all_of(weights.data<int8_t>(), isNibble) ? PackedStep::i4 : PackedStep::i8;
  }
  return w.isF32() ? PackedStep::f32 : w.isBF16() ? PackedStep::bf16 : PackedStep::f16;
}

static PackingAttr packDepthwiseAs(device::ConvOp conv, const top::TensorData &weights, PackingTarget target) {
  Type x = typeOf(conv.getX()).getElementType(), w = weights.type.getElementType();
  bool integers = isIntegerOperand(x);
  PackedOrder order = PackedOrder::depthwise;
  PackedStep step = PackedStep::f32; // also for bytes, whose sums are exact in f32
  // A row of symbolic width ends in tiles that begin at any even column; those of dilated windows must not.
  bool endsAnywhere = hasOpenPlanes(conv) && conv.getDilations().back() != 1;
  if (isByte(x) && target.byteDots && !endsAnywhere &&
      fitsWindows(conv.getStrides().back(), conv.getDilations().back())) {
    order = PackedOrder::windows, step = PackedStep::i8x4;
  } else if (isByte(w) && !integers) {
    step = PackedStep::i8; // the epilogue applies the scales
  } else if (!isByte(x)) {
    step = stepOf(x, weights, target, /*pairs=*/false);
  }
  return PackingAttr::get(conv.getContext(), order, step, weights.type.getShape(),
                          depthwiseTileRows(target.vectorBytes, integers), kBlock, 0, 0, 0);
}

/// Returns the packing for AMX tiles of weights with |columns| columns.
static PackingAttr packForAmxTiles(Operation *op, PackedOrder order, ArrayRef<int64_t> shape, Value x, int64_t columns,
                                   int64_t chunk) {
  Type element = typeOf(x).getElementType();
  PackedStep step = isIntegerOperand(element) ? PackedStep::i8x4 : PackedStep::bf16x2;
  return PackingAttr::get(op->getContext(), order, step, shape, kAmxTileRows / tileProducts(element),
                          columns > kBlock ? 2 * kBlock : kBlock, 0, 0, chunk);
}

/// Returns the order in which AMX tiles could read the weights of a direct convolution, if any.
static std::optional<PackedOrder> orderForAmxTiles(device::ConvOp conv) {
  if (device::isBlocked(conv.getX().getType())) {
    return PackedOrder::channels_last;
  }
  bool pixels = conv.getWeightShape()[1] <= kPixel && conv.getDilations().back() == 1;
  return pixels ? std::optional(PackedOrder::pixels) : std::nullopt;
}

PackingAttr choosePacking(device::ConvOp conv, const top::TensorData &weights, PackingTarget target) {
  AlgorithmAttr algorithm = algorithmOf(conv);
  if (algorithm.getValue() == ConvAlgorithm::depthwise) {
    return packDepthwiseAs(conv, weights, target);
  }
  bool winograd = algorithm.getValue() == ConvAlgorithm::winograd;
  if (std::optional<PackedOrder> last = winograd ? std::nullopt : orderForAmxTiles(conv)) {
    if (std::optional<KSplit> chunks = amxTilesOf(conv, *last, target)) {
      return packForAmxTiles(conv, *last, weights.type.getShape(), conv.getX(),
                             weights.type.getShape()[0] / conv.getGroups(), chunks->chunk);
    }
  }
  PackedOrder order = winograd                                   ? PackedOrder::winograd
                      : device::isBlocked(conv.getX().getType()) ? PackedOrder::blocks
                      : conv.getDilations().back() != 1          ? PackedOrder::apart
                                                                 : PackedOrder::taps;
  Type x = typeOf(conv.getX()).getElementType();
  bool pairs = order == PackedOrder::blocks || order == PackedOrder::taps;
  PackedStep step = winograd ? PackedStep::f32 : stepOf(x, weights, target, pairs);
  int64_t blocks = choosePanelBlocks(conv, {algorithm.getValue(), algorithm.getOutputTile()}, target);
  return PackingAttr::get(conv.getContext(), order, step, weights.type.getShape(),
                          maxTileRows(target.vectorBytes, blocks), blocks * kBlock, algorithm.getOutputTile(),
                          static_cast<int64_t>(conv.getWeightGroup()), 0);
}

/// Returns true if the rows of |matmul| are not empty and known, or only their number and that of the batches are
/// symbolic.
static bool hasTileRows(device::MatMulOp matmul) {
  Shape a(matmul.getA()), y(matmul.getY());
  if (a.isKnown() && y.isKnown()) {
    return numElements(a) > 0 && numElements(y) > 0;
  }
  return a.isDetermined() && y.isDetermined() && !matmul.getTransA() && a.rank() == y.rank() && a.back().isKnown() &&
         y.back().isKnown() && a.back().value() > 0 && y.back().value() > 0 && sameSizes(a.dropBack(), y.dropBack());
}

bool hasRegisterTile(device::MatMulOp matmul, PackingTarget target) {
  constexpr int64_t kBytesWithoutFma = 16; // vector bytes of chips without FMA
  RankedTensorType a = typeOf(matmul.getA()), b = typeOf(matmul.getB());
  if (device::isOrderedContraction(matmul) && target.vectorBytes == kBytesWithoutFma) {
    return false; // without FMA, the register tile does not fuse as ordered sums require
  }
  Type w = hasIntegerWeights(matmul) ? Type(Float32Type::get(matmul.getContext())) : b.getElementType();
  bool widens = isIntegerOperand(a.getElementType()) || device::isNarrowFloat(a.getElementType());
  bool oneMatrix = llvm::all_of(b.getShape().drop_back(2), [](int64_t dim) { return dim == 1; });
  return hasTileTypes(matmul.getA(), w, matmul.getBias(), matmul.getY()) && !(widens && matmul.getTransA()) &&
         oneMatrix && hasTileRows(matmul) &&
         llvm::all_of(matmul.getExtras(), [&](Value extra) { return matmul.canReadExtra(extra); });
}

PackingAttr choosePacking(device::MatMulOp matmul, const top::TensorData &weights, PackingTarget target) {
  RankedTensorType a = typeOf(matmul.getA()), b = typeOf(matmul.getB()), y = typeOf(matmul.getY());
  int64_t k = b.getDimSize(b.getRank() - (matmul.getTransB() ? 1 : 2)), n = Shape(y).back().value();
  PackedStep step = stepOf(a.getElementType(), weights, target, /*pairs=*/true);
  int64_t rows = std::max<int64_t>(
      1, likelyOf(matmul.getTransA() ? Shape(y).dropBack().back() : countElements(Shape(y).dropBack())));
  TiledContraction contraction{1, rows, int64_t(llvm::divideCeil(k, stepElements(step))), n};
  contraction.slowdown = step == PackedStep::bf16x2 && target.amx ? kPairSlowdownBesideAmx : 1;
  int64_t blocks = choosePanelBlocks(target.vectorBytes, contraction);
  bool integers = step == PackedStep::i8x4 || step == PackedStep::i16x2;
  if (target.amx && Shape(y).isKnown() && rows >= kFewestMatrixRows && (integers || step == PackedStep::bf16x2)) {
    KSplit chunks = chunksOfRow(4 * int64_t(llvm::divideCeil(k, integers ? 4 : 2)));
    int64_t products = tileProducts(a.getElementType()), copied = products > 1 ? rows * k * products : 0;
    if (amxTileCycles(contraction, chunks.count * products, copied) <
        tileCycles(target.vectorBytes, blocks, contraction)) {
      return packForAmxTiles(matmul, PackedOrder::matrix, b.getShape(), matmul.getA(), n, chunks.chunk);
    }
  }
  return PackingAttr::get(matmul.getContext(), PackedOrder::matrix, step, b.getShape(),
                          maxTileRows(target.vectorBytes, blocks), blocks * kBlock, 0,
                          static_cast<int64_t>(matmul.getWeightGroup()), 0);
}

bool hasRegisterTile(device::RecurrentOp op, PackingTarget target) {
  constexpr int64_t kBytesWithoutFma = 16;
  auto isTileFloat = [](Value value) {
    Type element = typeOf(value).getElementType();
    return element.isF32() || device::isNarrowFloat(element);
  };
  Shape x = op.getX();                                     // steps and sequences may be open
  bool plain = typeOf(op.getR()).getElementType().isF32(); // other types are widened in registers, which requires AVX2
  return top::isConstant(op.getR()) && isTileFloat(op.getX()) && isTileFloat(op.getR()) && isTileFloat(op.getY()) &&
         minOf(countElements(x)) > 0 && x.back().isKnown() && op.getHiddenSize() > 0 &&
         (plain || target.vectorBytes > kBytesWithoutFma);
}

PackingAttr choosePacking(device::RecurrentOp op, const top::TensorData &weights, PackingTarget target) {
  int64_t hidden = op.getHiddenSize(), batch = likelyOf(Shape(op.getX())[1]);
  int64_t columns = op.getNumGates() * int64_t(llvm::alignTo(hidden, kBlock));
  int64_t blocks = choosePanelBlocks(target.vectorBytes, TiledContraction{1, batch, hidden, columns});
  PackedStep step = stepOf(Float32Type::get(op.getContext()), weights, target, /*pairs=*/false);
  return PackingAttr::get(op.getContext(), PackedOrder::matrix, step, weights.type.getShape(),
                          maxTileRows(target.vectorBytes, blocks), blocks * kBlock, 0, 0, 0);
}

//===----------------------------------------------------------------------===//
// Packers
//===----------------------------------------------------------------------===//

/// Returns a packer that calls |function| on buffers of f32, or on the bits of f16 or bf16.
template <typename Function>
static Packer onFloats(PackedStep step, Function function) {
  if (step != PackedStep::f32) {
    return [=](const char *from, char *to) {
      function(reinterpret_cast<const uint16_t *>(from), reinterpret_cast<uint16_t *>(to));
    };
  }
  return [=](const char *from, char *to) {
    function(reinterpret_cast<const float *>(from), reinterpret_cast<float *>(to));
  };
}

static const int8_t *asIntegers(const char *from) { return reinterpret_cast<const int8_t *>(from); }
static const uint16_t *asHalves(const char *from) { return reinterpret_cast<const uint16_t *>(from); }

/// Returns the constant scales of |op|; empty if it has none.
template <typename OpTy>
static std::vector<float> scaleData(OpTy op) {
  std::optional<top::TensorData> data = op.getScales() ? top::getConstantData(op.getScales()) : std::nullopt;
  ArrayRef<float> scales = data ? data->data<float>() : ArrayRef<float>();
  return {scales.begin(), scales.end()};
}

static Packer depthwisePacker(device::ConvOp conv, PackingAttr packing) {
  ConvWeightDims dims = weightDims(conv);
  PackedStep step = packing.getStep();
  if (packing.getOrder() == PackedOrder::windows) {
    return [=, stride = conv.getStrides().back()](const char *from, char *to) {
      packWindows(dims, stride, asIntegers(from), to);
    };
  }
  if (isIntegerOperand(typeOf(conv.getX()).getElementType())) {
    return [=](const char *from, char *to) { packDepthwise8(dims, step, asIntegers(from), to); };
  }
  if (step == PackedStep::i8) {
    return [=](const char *from, char *to) { packDepthwise(dims, asIntegers(from), reinterpret_cast<int8_t *>(to)); };
  }
  return onFloats(step, [=](auto *from, auto *to) { packDepthwise(dims, from, to); });
}

Packer packerOf(device::ConvOp conv, PackingAttr packing) {
  PackedOrder order = packing.getOrder();
  if (order == PackedOrder::depthwise || order == PackedOrder::windows) {
    return depthwisePacker(conv, packing);
  }
  ConvWeightDims dims = weightDims(conv);
  Panels panels = panelsOfConv(packing, dims.groups);
  if (order == PackedOrder::winograd) {
    return [=, tile = packing.getOutputTile()](const char *from, char *to) {
      packWinograd(dims, panels.panelBlocks, tile, reinterpret_cast<const float *>(from),
                   reinterpret_cast<float *>(to));
    };
  }
  bool blocked = order == PackedOrder::blocks;
  if (isScaledStep(panels.step)) {
    return [=, scales = scaleData(conv)](const char *from, char *to) {
      packIntegerConv(panels, dims, blocked, asIntegers(from), scales.data(), to);
    };
  }
  if (panels.step == PackedStep::bf16x2) {
    return [=](const char *from, char *to) { packConvSteps(panels, dims, order, asHalves(from), to); };
  }
  if (!isFloatStep(panels.step)) {
    return [=](const char *from, char *to) { packConvSteps(panels, dims, order, asIntegers(from), to); };
  }
  return onFloats(panels.step, [=](auto *from, auto *to) { packConv(dims, panels.panelBlocks, blocked, from, to); });
}

Packer packerOf(device::MatMulOp matmul, PackingAttr packing) {
  bool transposed = matmul.getTransB();
  Panels panels = panelsOfMatMul(packing, transposed);
  int64_t n = panels.columns, k = packing.getShape().take_back(2)[transposed ? 1 : 0];
  if (isScaledStep(panels.step)) {
    return [=, scales = scaleData(matmul)](const char *from, char *to) {
      packIntegerMatMul(panels, k, transposed, asIntegers(from), scales.data(), to);
    };
  }
  if (panels.step == PackedStep::bf16x2) {
    return [=](const char *from, char *to) { packMatMulSteps(panels, k, transposed, asHalves(from), to); };
  }
  if (!isFloatStep(panels.step)) {
    return [=](const char *from, char *to) { packMatMulSteps(panels, k, transposed, asIntegers(from), to); };
  }
  return onFloats(panels.step,
                  [=](auto *from, auto *to) { packMatMul(k, n, transposed, panels.panelBlocks, from, to); });
}

Packer packerOf(device::RecurrentOp op, PackingAttr packing) {
  Panels panels = panelsOfRecurrent(op, packing);
  int64_t hidden = op.getHiddenSize(), gates = op.getNumDirections() * op.getNumGates() / panels.groups;
  return onFloats(panels.step, [=](auto *from, auto *to) {
    int64_t columns = panels.columns / gates; // columns of a gate, including padding
    std::vector<std::remove_cvref_t<decltype(*to)>> padded(panels.columns * hidden);
    for (int64_t group = 0; group < panels.groups; ++group) {
      for (int64_t gate = 0; gate < gates; ++gate) {
        std::copy_n(from + (group * gates + gate) * hidden * hidden, hidden * hidden,
                    padded.begin() + gate * columns * hidden);
      }
      packMatMul(hidden, panels.columns, /*transposed=*/true, panels.panelBlocks, padded.data(),
                 to + group * panels.columns * hidden);
    }
  });
}

} // namespace tessera::x86
