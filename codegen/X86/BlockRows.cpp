//===- BlockRows.cpp - Quantised rows of a block matmul -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/BlockRows.h"

#include "codegen/Kernels/BlockMatMul.h"
#include "codegen/X86/MicroShape.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::x86 {

BlockGeometry::BlockGeometry(device::BlockMatMulOp op, BlockPackingAttr packing, const X86Target &target)
    : packing(packing), rows(multiply(Shape(op.getY()).dropBack().dims())), depth(op.getWeightShape()[0]),
      columns(op.getWeightShape()[1]), block(packing.getBlock()), dots(target.vnni), lanes(int64_t(target.lanes(32))),
      recordBytes(block + kBytesOfValues) {
  constexpr int64_t kBytesOfPart = 192 * 1024, kMostRows = 64, kBytesOfRows = 512 * 1024;
  // The tiles of a few rows wait for the weights, those of many rows share the quantised rows of a part.
  panelsOfPart = std::clamp<int64_t>(kBytesOfPart / std::max<int64_t>(1, packing.bytesOfPanel()), 1, packing.panels());
  panelsOfPart = ceilDiv(packing.panels(), ceilDiv(packing.panels(), panelsOfPart));
  mostRows = dots ? (block <= kStepsAtOnce * 4 ? 16 : 8) : 4;
  rowsOfPart =
      std::clamp<int64_t>(kBytesOfRows / (recordBytes * packing.blocks()) / mostRows * mostRows, mostRows, kMostRows);
  isStreamed = packing.bytes() > 1024 * 1024;
}

bool BlockGeometry::sharesUnpacked() const { return !dots && std::min(maxOf(rows), rowsOfPart) > mostRows; }

bool BlockGeometry::hasFewRows() const {
  return !rows.isKnown() || (rows.value() + rowsOfPart - 1) % rowsOfPart < mostRows;
}

int64_t BlockGeometry::panelParts() const { return ceilDiv(packing.panels(), panelsOfPart); }

int64_t BlockGeometry::sumsAt() const {
  return int64_t(llvm::alignTo(packing.blocks() * (rowsOfPart * recordBytes + kBlockBytes), kBlockBytes));
}

int64_t BlockGeometry::scratchBytes() const {
  return sharesUnpacked() ? partialSumsAt() + rowsOfPart * lanes * 4 : sumsAt();
}

BlockRows::BlockRows(KernelBuilder &kb, const BlockGeometry &g, Value count)
    : kb(kb), g(g), count(count), blockBytes(kb.add(kb.mul(count, g.recordBytes), kBlockBytes)) {}

Value BlockRows::at(Value block, Value row) {
  return byteOffset(kb, kb.scratch(), kb.add(kb.mul(block, blockBytes), kb.mul(row, g.recordBytes)));
}

void BlockRows::quantize(Value first) {
  kb.forLoop(kb.constant(0), count, 1, [&](Value row) {
    Value from = kb.element(kb.b.getF32Type(), kb.operand(0), kb.mul(kb.add(first, row), g.depth));
    const int64_t whole = g.depth / g.block;
    kb.forLoop(0, whole, 1, [&](Value block) { quantizeBlock(block, from, at(block, row), g.block); });
    if (whole < g.packing.blocks()) {
      quantizeBlock(kb.constant(whole), from, at(kb.constant(whole), row), g.depth % g.block);
    }
  });
}

/// Quantises the |count| entries of a block and stores zeros behind them.
void BlockRows::quantizeBlock(Value block, Value from, Value to, int64_t count) {
  auto vector = VectorType::get({kBlock}, kb.b.getF32Type()), integers = VectorType::get({kBlock}, kb.b.getI32Type());
  Value first = kb.mul(block, g.block), largest, total;
  SmallVector<Value> parts;
  for (int64_t at = 0; at < g.block; at += kBlock) {
    Value index = kb.add(first, at);
    int64_t left = std::clamp<int64_t>(count - at, 0, kBlock);
    Value x = left == kBlock ? kb.load(vector, from, index)
              : left == 0    ? kb.zero(vector)
                             : kb.maskedLoad(vector, from, index, kb.maskBelow(kBlock, kb.constant(left)));
    Value bits = kernels::emitMagnitudeBits(kb, x);
    largest = largest ? Value(arith::MaxSIOp::create(kb.b, largest, bits)) : bits;
    parts.push_back(x);
  }
  Value bits = vector::ReductionOp::create(kb.b, vector::CombiningKind::MAXSI, largest);
  kernels::RowScale scale = kernels::emitRowScale(kb, bits);
  Value inverse = kb.splat(scale.inverse, kBlock);
  for (auto [part, x] : llvm::enumerate(parts)) {
    Value q = kernels::emitQuantized(kb, x, inverse);
    kb.store(q, to, kb.constant(int64_t(part) * kBlock), 1);
    Value wide = arith::ExtSIOp::create(kb.b, integers, q);
    total = total ? Value(arith::AddIOp::create(kb.b, total, wide)) : wide;
  }
  storeValues(to, scale.scale, vector::ReductionOp::create(kb.b, vector::CombiningKind::ADD, total));
}

void BlockRows::storeValues(Value to, Value scale, Value total) {
  auto store = [&](Value value, int64_t at) {
    kb.store(value, byteOffset(kb, to, Dim(g.block + at)), kb.constant(0), 4);
  };
  store(scale, kScaleAt);
  Value lowest = arith::ConstantOp::create(kb.b, kb.b.getI32IntegerAttr(int32_t(g.packing.getLowest())));
  store(arith::MulIOp::create(kb.b, total, lowest), kStartAt);
  Value weight = arith::MulFOp::create(kb.b, arith::SIToFPOp::create(kb.b, kb.b.getF32Type(), total), scale);
  store(weight, kMinFactorAt);
}

} // namespace tessera::x86
