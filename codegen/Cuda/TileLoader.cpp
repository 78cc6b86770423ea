//===- TileLoader.cpp - Rows of K on their way to shared memory -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/TileLoader.h"

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
    rows.push_back(walk->row(b, batch, b.add(first, rowAt ? rowAt(tileRows.back()) : tileRows.back())));
  }
}

Value TileLoader::address(Value offset) {
  Value wide = arith::ExtSIOp::create(b.kb.b, b.kb.b.getI64Type(), offset);
  return b.kb.element(b.kb.b.getI8Type(), base, wide);
}

/// Whether there is such a unit; |inside|: whether it is inside of the window.
Value TileLoader::validity(const OperandWalk::Place &row, const OperandWalk::Place &unit, Value &inside) {
  inside = walk->isInside(b, row, unit);
  return b.both(b.both(row.valid, unit.valid), inside);
}

void TileLoader::load(Value step, Value shared) {
  int64_t unitsOfChunk = kChunk / walk->unitBytes();
  Value first = b.mul(b.add(b.mul(step, tile.chunks()), chunk), unitsOfChunk);
  SmallVector<OperandWalk::Place> units;
  for (int64_t i = 0; i < unitsOfChunk; ++i) {
    units.push_back(walk->unit(b, b.add(first, i)));
  }
  for (auto [tileRow, row] : llvm::zip_equal(tileRows, rows)) {
    loadUnits(row, units, b.at(shared, tile.offset(b, tileRow, chunk)));
  }
}

void TileLoader::loadUnits(const OperandWalk::Place &row, ArrayRef<OperandWalk::Place> units, Value to) {
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
  Value filled = arith::ConstantOp::create(b.kb.b, builder.getIntegerAttr(unit, fill));
  Value chunkValue = LLVM::UndefOp::create(b.kb.b, type);
  for (auto [i, place] : llvm::enumerate(units)) {
    Value valid = validity(row, place, inside);
    Value offset = b.add(row.offset, place.offset);
    // Where there is none, the first one is read instead.
    Value safe = arith::SelectOp::create(b.kb.b, valid, offset, b.constant(0));
    Value loaded = LLVM::LoadOp::create(b.kb.b, unit, address(safe), bytes);
    Value value = arith::SelectOp::create(b.kb.b, valid, loaded, filled);
    chunkValue = LLVM::InsertElementOp::create(b.kb.b, chunkValue, value, b.constant(int64_t(i)));
  }
  b.storeShared(chunkValue, to, kChunk);
}

} // namespace tessera::cuda
