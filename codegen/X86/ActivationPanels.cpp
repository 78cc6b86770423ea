//===- ActivationPanels.cpp - Panels packed at run time -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/ActivationPanels.h"

#include "codegen/Kernels/Transpose.h"
#include "codegen/X86/AmxTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace tessera::x86 {

ActivationPanels::ActivationPanels(device::MatMulOp op, KernelBuilder &kb, const MatMulGeometry &g)
    : kb(kb), g(g), element(getElementTypeOrSelf(op.getB().getType())), transposed(op.getTransB()) {}

void ActivationPanels::pack(Value matrix, Value panel, Value to, bool last) const {
  constexpr int64_t kFewSteps = 4; // too few to transpose in registers
  if (g.rows.kind != TileKind::F32) {
    return packBytes(matrix, panel, to, blocksOf(last));
  }
  if (transposed && element.isF32() && g.dims.k >= kFewSteps) {
    return packTransposed(matrix, panel, to, last);
  }
  packFloats(matrix, panel, to, blocksOf(last));
}

/// Returns the offsets 0, |stride|, 2 |stride| ... of |lanes| lanes.
Value ActivationPanels::laneOffsets(int64_t lanes, int64_t stride) const {
  SmallVector<int64_t> offsets;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    offsets.push_back(lane * stride);
  }
  auto type = VectorType::get({lanes}, kb.b.getI64Type());
  return arith::ConstantOp::create(kb.b, DenseElementsAttr::get(type, ArrayRef<int64_t>(offsets)));
}

void ActivationPanels::packFloats(Value matrix, Value panel, Value to, int64_t blocks) const {
  int64_t k = g.dims.k, n = g.dims.n, lanes = targetOf(kb).lanes(32);
  for (int64_t part = 0; part < blocks * vectorsPerBlock(targetOf(kb)); ++part) {
    Value column = kb.add(kb.mul(panel, g.columns.panels.blocks * kBlock), part * lanes);
    Value mask = kb.maskBelow(lanes, kb.sub(kb.constant(n), column));
    Value offsets = transposed ? laneOffsets(lanes, k) : Value();
    kb.forLoop(0, k, 1, [&](Value step) {
      Value value = transposed
                        ? kb.gatherElements(element, lanes, matrix, kb.add(kb.mul(column, k), step), offsets, mask)
                        : kb.loadElements(element, lanes, matrix, kb.add(kb.mul(step, n), column), mask);
      kb.store(value, to, kb.add(kb.mul(step, blocks * kBlock), part * lanes));
    });
  }
}

/// Packs a panel of a transposed f32 B by transposing its rows of K in registers.
void ActivationPanels::packTransposed(Value matrix, Value panel, Value to, bool last) const {
  int64_t k = g.dims.k, n = g.dims.n, blocks = blocksOf(last);
  const PanelSplit &panels = g.columns.panels;
  for (int64_t block = 0; block < blocks; ++block) {
    int64_t columns = last ? std::min(kBlock, n - ((panels.count - 1) * panels.blocks + block) * kBlock) : kBlock;
    Value column = kb.add(kb.mul(panel, panels.blocks * kBlock), block * kBlock);
    kernels::LoopNest nest{{{k, {1, blocks * kBlock}}, {columns, {k, 1}}}, {0, 0}, columns < kBlock ? kBlock : 0};
    kernels::TiledMove move = kernels::planMove(kb, nest, byteOffset(kb, matrix, kb.mul(column, k * 4)),
                                                byteOffset(kb, to, block * kBlockBytes), kb.b.getF32Type());
    kb.forLoop(0, move.tiles, 1, move.body);
  }
}

void ActivationPanels::packBytes(Value matrix, Value panel, Value to, int64_t blocks) const {
  auto words = VectorType::get({kBlock}, kb.b.getI32Type());
  int64_t k = g.dims.k;
  for (int64_t block = 0; block < blocks; ++block) {
    Value column = kb.add(kb.mul(panel, g.columns.panels.blocks * kBlock), block * kBlock);
    Value mask = kb.maskBelow(kBlock, kb.sub(kb.constant(g.dims.n), column));
    kb.forLoop(0, k / 4, 1,
               [&](Value step) { storeStep(stepOfBytes(matrix, step, column, mask, 4), to, step, block, blocks); });
    if (int64_t rest = k % 4) {
      Value last = kb.constant(k / 4);
      storeStep(stepOfBytes(matrix, last, column, mask, rest), to, last, block, blocks);
    }
    kb.forLoop(ceilDiv(k, 4), g.steps(), 1, [&](Value step) { storeStep(kb.zero(words), to, step, block, blocks); });
  }
}

/// Loads elements 4 |step| ... 4 |step| + 3 of K of the 16 columns from |column| on, as i32; only |count| of them
/// exist.
Value ActivationPanels::stepOfBytes(Value matrix, Value step, Value column, Value mask, int64_t count) const {
  auto words = VectorType::get({kBlock}, kb.b.getI32Type());
  if (transposed) {
    int64_t stride = g.dims.k / 4;
    Value offsets = laneOffsets(kBlock, stride);
    return kb.gather(words, matrix, kb.add(kb.mul(column, stride), step), offsets, mask);
  }
  auto bytes = VectorType::get({kBlock}, kb.b.getI8Type());
  SmallVector<Value> rows;
  for (int64_t i = 0; i < 4; ++i) {
    Value at = kb.add(kb.mul(kb.add(kb.mul(step, 4), i), g.dims.n), column);
    rows.push_back(i < count ? kb.maskedLoad(bytes, matrix, at, mask) : kb.zero(bytes));
  }
  Value all = interleave(kb, interleave(kb, rows[0], rows[2]), interleave(kb, rows[1], rows[3]));
  return vector::BitCastOp::create(kb.b, words, all);
}

/// Stores K step |index| of |block|: as bytes, or as words with the even bytes before the odd ones.
void ActivationPanels::storeStep(Value step, Value to, Value index, int64_t block, int64_t blocks) const {
  int64_t stepBytes = g.columns.weights.tileStepBytes;
  Value at = kb.add(kb.mul(index, blocks * stepBytes), block * stepBytes);
  Value place = byteOffset(kb, to, at);
  if (g.columns.weights.tileStep == PackedStep::i8x4) {
    return kb.store(step, place, kb.constant(0));
  }
  auto words = VectorType::get({2 * kBlock}, kb.b.getI16Type());
  Value pairs = vector::BitCastOp::create(kb.b, words, step);
  Value eight = arith::ConstantOp::create(kb.b, DenseElementsAttr::get(words, int16_t(8)));
  Value even = arith::ShRSIOp::create(kb.b, arith::ShLIOp::create(kb.b, pairs, eight), eight);
  kb.store(even, place, kb.constant(0));
  kb.store(arith::ShRSIOp::create(kb.b, pairs, eight), byteOffset(kb, place, kBlockBytes), kb.constant(0));
}

} // namespace tessera::x86
