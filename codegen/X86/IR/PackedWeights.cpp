//===- PackedWeights.cpp - Byte layout of packed weights ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/IR/PackedWeights.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::x86 {

static int64_t ceilOf(int64_t x, int64_t y) { return (x + y - 1) / y; }

ConvWeightDims weightDims(device::ConvOp conv) {
  ArrayRef<int64_t> dims = conv.getWeightShape();
  return {dims[0], dims[1], dims[2], dims[3], static_cast<int64_t>(conv.getGroups())};
}

int64_t stepElements(PackedStep step) {
  switch (step) {
  case PackedStep::i8x4:
  case PackedStep::i16x4:
    return 4;
  case PackedStep::i16x2:
  case PackedStep::bf16x2:
    return 2;
  default:
    return 1;
  }
}

int64_t stepBits(PackedStep step) {
  switch (step) {
  case PackedStep::i4:
    return 4;
  case PackedStep::i8:
    return 8;
  case PackedStep::f16:
  case PackedStep::bf16:
    return 16;
  case PackedStep::f32:
  case PackedStep::i8x4:
  case PackedStep::i16x2:
  case PackedStep::bf16x2:
    return 32;
  case PackedStep::i16x4:
    return 64;
  }
  return 0;
}

//===----------------------------------------------------------------------===//
// Panels
//===----------------------------------------------------------------------===//

int64_t Panels::steps() const {
  int64_t total = 0;
  for (const StepRun &run : runs) {
    total += run.count * run.size;
  }
  return total;
}

int64_t Panels::weightBytesOfBlock() const {
  int64_t bytes = 0;
  for (const StepRun &run : runs) {
    bytes += run.count * ceilOf(run.size * stepBits(step), 8) * kBlock;
  }
  return bytes;
}

/// Returns |steps| K steps as runs of 16 and one shorter run for the remainder.
static SmallVector<StepRun, 2> inBlocks(int64_t steps) {
  int64_t rest = steps % kBlock;
  return {{steps / kBlock, kBlock}, {rest ? 1 : 0, rest}};
}

int64_t paddedDepth(PackedOrder order, int64_t channels, int64_t elementBytes, int64_t kw, int64_t chunk) {
  int64_t together = order == PackedOrder::pixels ? kPixel : kBlock;
  int64_t block = together * elementBytes, bytes = ceilOf(channels, together) * block;
  while (kw * bytes % chunk != 0) {
    bytes += block;
  }
  return bytes;
}

Panels panelsOfConv(PackingAttr packing, int64_t groups) {
  ArrayRef<int64_t> shape = packing.getShape();
  int64_t depth = shape[1], taps = shape[2] * shape[3], perStep = stepElements(packing.getStep());
  Panels panels{packing.getStep(), shape[0] / groups, packing.getColumns() / kBlock, groups, {}};
  switch (packing.getOrder()) {
  case PackedOrder::blocks:
    panels.runs = {{depth / kBlock * taps, kBlock / perStep},
                   {depth % kBlock ? taps : 0, ceilOf(depth % kBlock, perStep)}};
    break;
  case PackedOrder::taps:
    panels.runs = {{depth * shape[2], ceilOf(shape[3], perStep)}};
    break;
  case PackedOrder::apart:
    panels.runs = {{depth * taps, 1}};
    break;
  case PackedOrder::channels_last:
  case PackedOrder::pixels: {
    int64_t chunk = packing.getChunk();
    panels.runs = {{taps * paddedDepth(packing.getOrder(), depth, 4 / perStep, shape[3], chunk) / chunk, chunk / 4}};
    break;
  }
  default:
    panels.runs = inBlocks(depth);
    break;
  }
  if (int64_t group = packing.getScaleGroup()) {
    panels.scaleRows = ceilOf(depth, group), panels.runsPerScale = group / kBlock * taps;
  }
  return panels;
}

Panels panelsOfMatrix(PackedStep step, int64_t k, int64_t n, int64_t panelBlocks) {
  return {step, n, panelBlocks, 1, inBlocks(ceilOf(k, stepElements(step)))};
}

Panels panelsOfMatMul(PackingAttr packing, bool transposed) {
  ArrayRef<int64_t> shape = packing.getShape().take_back(2);
  int64_t k = shape[transposed ? 1 : 0], n = shape[transposed ? 0 : 1];
  Panels panels = panelsOfMatrix(packing.getStep(), k, n, packing.getColumns() / kBlock);
  if (int64_t chunk = packing.getChunk()) {
    panels.runs = {{ceilOf(panels.steps(), chunk / 4), chunk / 4}};
  }
  if (int64_t group = packing.getScaleGroup()) {
    panels.scaleRows = ceilOf(k, group), panels.runsPerScale = group / kBlock;
  }
  return panels;
}

Panels panelsOfRecurrent(device::RecurrentOp op, PackingAttr packing) {
  int64_t hidden = op.getHiddenSize(), gates = op.getNumGates(), columns = ceilOf(hidden, kBlock) * kBlock;
  bool apart = op.getKind() == "gru" && !op.getLinearBeforeReset();
  int64_t parts = apart ? gates : 1;
  return {packing.getStep(), gates / parts * columns, packing.getColumns() / kBlock, op.getNumDirections() * parts,
          inBlocks(hidden)};
}

PackingAttr packingOf(Operation *op) {
  if (auto recurrent = dyn_cast<device::RecurrentOp>(op)) {
    return dyn_cast_if_present<PackingAttr>(recurrent.getPackingAttr());
  }
  if (auto conv = dyn_cast<device::ConvOp>(op)) {
    return dyn_cast_if_present<PackingAttr>(conv.getPackingAttr());
  }
  auto matmul = dyn_cast<device::MatMulOp>(op);
  return matmul ? dyn_cast_if_present<PackingAttr>(matmul.getPackingAttr()) : PackingAttr();
}

//===----------------------------------------------------------------------===//
// Depthwise
//===----------------------------------------------------------------------===//

DepthwiseWindows depthwiseWindows(int64_t kw, int64_t strideW) {
  return {{ceilOf(kw, 4), strideW % 2 ? ceilOf(kw + 1, 4) : 0}};
}

int64_t windowBytesOfBlock(int64_t kh, int64_t kw, int64_t strideW) {
  DepthwiseWindows windows = depthwiseWindows(kw, strideW);
  return kh * (windows.count[0] + windows.count[1]) * kBlock * 4;
}

bool fitsWindows(int64_t strideW, int64_t dilationW) {
  // A tile of 16 outputs must begin at an even column of every residue.
  return dilationW == 1 || (strideW == 1 && (dilationW == 2 || dilationW == 4 || dilationW == 8));
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

static int64_t packedBytes(Operation *op, PackingAttr packing) {
  auto conv = dyn_cast<device::ConvOp>(op);
  if (auto recurrent = dyn_cast<device::RecurrentOp>(op)) {
    return panelsOfRecurrent(recurrent, packing).bytes();
  }
  if (!conv) {
    return panelsOfMatMul(packing, cast<device::MatMulOp>(op).getTransB()).bytes();
  }
  ArrayRef<int64_t> shape = packing.getShape();
  int64_t blocks = ceilOf(shape[0], kBlock);
  switch (packing.getOrder()) {
  case PackedOrder::winograd: {
    int64_t window = packing.getOutputTile() + 2;
    return window * window * panelsOfConv(packing, 1).bytes();
  }
  case PackedOrder::depthwise:
    return blocks * kBlock * shape[2] * shape[3] * stepBits(packing.getStep()) / 8;
  case PackedOrder::windows:
    return blocks * windowBytesOfBlock(shape[2], shape[3], conv.getStrides().back());
  default:
    return panelsOfConv(packing, static_cast<int64_t>(conv.getGroups())).bytes();
  }
}

RankedTensorType packedType(Operation *op, PackingAttr packing) {
  Builder builder(op->getContext());
  // Weights that multiply integers are stored as bytes, whatever they represent.
  PackedStep step = packing.getStep();
  bool bf16 = step == PackedStep::bf16 || step == PackedStep::bf16x2;
  bool floats = isa<FloatType>(getElementTypeOrSelf(op->getOperand(0).getType())) && (bf16 || isFloatStep(step));
  Type element = !floats                   ? Type(builder.getI8Type())
                 : step == PackedStep::f32 ? Type(builder.getF32Type())
                 : bf16                    ? Type(builder.getBF16Type())
                                           : Type(builder.getF16Type());
  return RankedTensorType::get({packedBytes(op, packing) * 8 / element.getIntOrFloatBitWidth()}, element);
}

} // namespace tessera::x86
