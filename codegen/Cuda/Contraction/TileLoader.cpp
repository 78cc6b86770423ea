//===- TileLoader.cpp - Loads rows of K to shared memory ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/Contraction/TileLoader.h"

#include "device_dialect/IR/Layout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace tessera::cuda {

Value SharedTile::offset(BlockBuilder &b, Value row, Value chunk) const {
  constexpr int64_t kChunksOfBanks = 8; // 32 banks of 4 bytes
  int64_t rowsOfBanks = std::max<int64_t>(1, kChunksOfBanks / chunks()), mixed = std::min(kChunksOfBanks, chunks());
  Value swizzled = b.exclusiveOr(chunk, b.rem(b.div(row, rowsOfBanks), mixed));
  return b.add(b.mul(row, kBytes), b.mul(swizzled, kChunk));
}

void TileLoader::begin(Value batch, Value first, function_ref<Value(Value)> rowAt) {
  int64_t atOnce = rowsAtOnce();
  bool byRows = walk->rowsAreNeighbours();
  Value thread = b.thread();
  Value row = byRows ? b.rem(thread, atOnce) : b.div(thread, tile.chunks());
  chunk = byRows ? b.div(thread, atOnce) : b.rem(thread, tile.chunks());
  for (int64_t i = 0; i < tile.rows; i += atOnce) {
    tileRows.push_back(b.add(row, i));
    operandRows.push_back(b.add(first, rowAt ? rowAt(tileRows.back()) : tileRows.back()));
    rows.push_back(walk->row(b, batch, operandRows.back()));
  }
}

Value TileLoader::address(Value offset) {
  Value wide = arith::ExtSIOp::create(b.kb.b, b.kb.b.getI64Type(), offset);
  return b.kb.element(b.kb.b.getI8Type(), base, wide);
}

/// Returns whether the unit of the row exists; sets |inside| to whether it is inside the window.
Value TileLoader::validity(const OperandIterator::Place &row, const OperandIterator::Place &unit, Value &inside) {
  inside = walk->isInside(b, row, unit);
  return b.both(b.both(row.valid, unit.valid), inside);
}

void TileLoader::load(Value step, Value shared) {
  int64_t unitsOfChunk = kChunk / walk->unitBytes();
  Value first = b.mul(b.add(b.mul(step, tile.chunks()), chunk), unitsOfChunk);
  SmallVector<OperandIterator::Place> units;
  for (int64_t i = 0; i < unitsOfChunk; ++i) {
    units.push_back(walk->unit(b, b.add(first, i)));
  }
  for (auto [tileRow, row] : llvm::zip_equal(tileRows, rows)) {
    loadUnits(row, units, b.at(shared, tile.offset(b, tileRow, chunk)));
  }
}

void TileLoader::loadUnits(const OperandIterator::Place &row, ArrayRef<OperandIterator::Place> units, Value to) {
  Value inside;
  OpBuilder &builder = b.kb.b;
  if (walk->unitBytes() == kChunk) {
    Value valid = validity(row, units[0], inside);
    Value from = address(b.add(row.offset, units[0].offset));
    return b.copyChunk(to, from, valid, inside ? static_cast<uint8_t>(fill) : 0);
  }
  int64_t bytes = walk->unitBytes();
  Type unit = builder.getIntegerType(bytes * 8);
  auto type = VectorType::get({kChunk / bytes}, unit);
  // Wider elements have no |fill|, but a unit may consist of several byte elements.
  Value filled = arith::ConstantOp::create(
      b.kb.b, builder.getIntegerAttr(unit, llvm::APInt::getSplat(unsigned(bytes * 8), llvm::APInt(8, fill & 0xff))));
  Value chunkValue = LLVM::UndefOp::create(b.kb.b, type);
  for (auto [i, place] : llvm::enumerate(units)) {
    Value valid = validity(row, place, inside);
    Value offset = b.add(row.offset, place.offset);
    // A missing unit reads the first one instead.
    Value safe = arith::SelectOp::create(b.kb.b, valid, offset, b.constant(0));
    Value loaded = LLVM::LoadOp::create(b.kb.b, unit, address(safe), bytes);
    Value value = arith::SelectOp::create(b.kb.b, valid, loaded, filled);
    chunkValue = LLVM::InsertElementOp::create(b.kb.b, chunkValue, value, b.constant(int64_t(i)));
  }
  b.storeShared(chunkValue, to, kChunk);
}

//===----------------------------------------------------------------------===//
// Weights that are widened to f32
//===----------------------------------------------------------------------===//

/// Returns the type of the four elements that become a chunk of f32.
Type WideningLoader::rawType() {
  OpBuilder &builder = b.kb.b;
  return element.isInteger(8) ? Type(builder.getI32Type()) : Type(VectorType::get({4}, element));
}

SmallVector<Type> WideningLoader::fetched() {
  SmallVector<Type> types(tileRows.size(), rawType());
  types.append(scales.base ? tileRows.size() : 0, b.kb.b.getF32Type());
  return types;
}

/// Loads the scale of element |k| (i32) of operand row |row|; the first scale if the element does not exist.
Value WideningLoader::scaleAt(Value row, Value valid, Value k) {
  Value index = row;
  if (!scales.isOne()) {
    index = b.add(index, b.mul(b.div(b.rem(k, scales.period), scales.group), scales.columns));
  }
  index = valid ? Value(arith::SelectOp::create(b.kb.b, valid, index, b.constant(0))) : index;
  return LLVM::LoadOp::create(b.kb.b, b.kb.b.getF32Type(),
                              b.kb.element(b.kb.b.getF32Type(), scales.base, b.toIndex(index)), /*alignment=*/4);
}

SmallVector<Value> WideningLoader::fetch(Value step) {
  constexpr int64_t kElements = kChunk / 4;
  kernels::KernelBuilder &kb = b.kb;
  Value number = b.add(b.mul(step, tile.chunks()), chunk);
  OperandIterator::Place unit = walk->unit(b, number);
  SmallVector<Value> raw, factors;
  for (auto [index, row] : llvm::zip_equal(operandRows, rows)) {
    Value inside, valid = validity(row, unit, inside), offset = b.add(row.offset, unit.offset);
    Value safe = valid ? Value(arith::SelectOp::create(kb.b, valid, offset, b.constant(0))) : offset;
    Value loaded = LLVM::LoadOp::create(kb.b, rawType(), address(safe), walk->unitBytes());
    Value none = arith::ConstantOp::create(kb.b, kb.b.getZeroAttr(rawType()));
    raw.push_back(valid ? Value(arith::SelectOp::create(kb.b, valid, loaded, none)) : loaded);
    if (scales.base) {
      factors.push_back(scaleAt(index, valid, b.mul(number, kElements)));
    }
  }
  raw.append(factors);
  return raw;
}

std::array<Value, 4> WideningLoader::widen(Value raw) {
  kernels::KernelBuilder &kb = b.kb;
  if (element.isInteger(8)) { // flipping the sign bit adds the bias
    return b.bytesToFloats(b.exclusiveOr(raw, b.constant(int32_t(0x80808080u))), 128);
  }
  std::array<Value, 4> floats;
  for (int64_t i = 0; i < 4; ++i) {
    Value narrow = LLVM::ExtractElementOp::create(kb.b, raw, b.constant(i));
    floats[i] = arith::ExtFOp::create(kb.b, kb.b.getF32Type(), narrow);
  }
  return floats;
}

void WideningLoader::put(ValueRange fetched, Value shared) {
  kernels::KernelBuilder &kb = b.kb;
  for (auto [i, row] : llvm::enumerate(tileRows)) {
    std::array<Value, 4> floats = widen(fetched[i]);
    Value four = LLVM::UndefOp::create(kb.b, VectorType::get({4}, kb.b.getF32Type()));
    for (auto [lane, value] : llvm::enumerate(floats)) {
      Value scaled =
          scales.base ? Value(arith::MulFOp::create(kb.b, value, fetched[tileRows.size() + i])) : Value(value);
      four = LLVM::InsertElementOp::create(kb.b, four, scaled, b.constant(int64_t(lane)));
    }
    b.storeShared(four, b.at(shared, tile.offset(b, row, chunk)), kChunk);
  }
}

} // namespace tessera::cuda
