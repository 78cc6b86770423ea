//===- QuantizedRows.cpp - Rows of a block matmul as integers -------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/Contraction/QuantizedRows.h"

#include "top_dialect/IR/BlockQuantization.h"

#include "llvm/ADT/bit.h"

namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Op;
using bmodel::npu::Type;
namespace {

uint32_t bitsOf(float number) { return llvm::bit_cast<uint32_t>(number); }

/// Returns the program that derives a number from the largest and the smallest entry of a block: 0 if the larger
/// magnitude is too small to divide by, else what |last| makes of the magnitude in register 4 and of 127 in register 5.
/// It leaves the number in register 6.
Instructions ofMagnitude(const Instructions &last) {
  Instructions program = {
      {Op::neg, 4, 1, 0, 0}, {Op::maximum, 4, 0, 4, 0}, {Op::constant, 5, 0, 0, bitsOf(top::kLargestOfRow)}};
  program.insert(program.end(), last.begin(), last.end());
  program.push_back({Op::constant, 7, 0, 0, bitsOf(top::kSmallestOfBlock)});
  program.push_back({Op::less, 7, 4, 7, 0}); // not if the magnitude is NaN
  program.push_back({Op::constant, 8, 0, 0, bitsOf(0.0f)});
  program.push_back({Op::select, 4, 7, 8, 6});
  return program;
}

/// The scale: NaN if the magnitude is infinite, because infinity minus infinity is NaN.
Instructions scaleProgram() {
  return ofMagnitude({{Op::div, 6, 4, 5, 0}, {Op::sub, 9, 6, 6, 0}, {Op::add, 6, 6, 9, 0}});
}
Instructions inverseProgram() { return ofMagnitude({{Op::div, 6, 5, 4, 0}}); }

/// Returns the lanes' shares of a block.
int64_t entriesPerLane(const BlockSizes &sizes, const Chip &chip) {
  return int64_t(llvm::divideCeil(uint64_t(sizes.block), chip.lanes));
}

/// Returns the bytes per lane of the buffers of a piece: entries, in two orders, and three numbers per block.
uint64_t bytesOfPiece(const BlockSizes &sizes, int64_t rows, int64_t blocks, const Chip &chip) {
  const int64_t perBlock = sizes.block + entriesPerLane(sizes, chip) + 3;
  return uint64_t(rows * blocks * perBlock) * sizeof(float) + 5 * chip.portBytes;
}

} // namespace

uint64_t QuantizedRows::bytesToKeep(const BlockSizes &sizes, int64_t rows, const Chip &chip) {
  const int64_t perBlock = entriesPerLane(sizes, chip), ofOnes = sizes.hasMins ? perBlock : 0;
  return uint64_t(rows * sizes.blocks() * perBlock + ofOnes) + uint64_t(rows * sizes.steps()) * sizeof(float) +
         3 * chip.portBytes;
}

uint64_t QuantizedRows::bytesToMake(const BlockSizes &sizes, int64_t rows, const Chip &chip) {
  return bytesToKeep(sizes, rows, chip) + bytesOfPiece(sizes, 1, 1, chip);
}

QuantizedRows::QuantizedRows(const BlockSizes &sizes, uint32_t begin, uint32_t count, CommandStream &stream)
    : begin(begin), count(count), sizes(sizes), stream(stream), chip(stream.chip) {
  integers = stream.addLocal({{uint32_t(sizes.blocks()), uint32_t(sizes.block), 1, count}}, Type::i8, 0);
  factors = stream.addLocal({{count, chip.lanes, 1, uint32_t(sizes.steps())}}, Type::f32, 0);
  if (sizes.hasMins) {
    ones = stream.addLocal({{1, chip.lanes, 1, uint32_t(sizes.block)}}, Type::i8, 0);
  }
}

void QuantizedRows::make(const TileView &x, uint64_t budget, std::vector<Tile> &tiles) {
  const auto blocks = uint32_t(sizes.blocks());
  const uint64_t kept = bytesToKeep(sizes, count, chip), room = budget > kept ? (budget - kept) / 2 : 0;
  Piece piece = {0, count, 0, blocks};
  while (piece.rows * piece.blocks > 1 && bytesOfPiece(sizes, piece.rows, piece.blocks, chip) > room) {
    uint32_t &dim = piece.rows > 1 ? piece.rows : piece.blocks;
    dim = (dim + 1) / 2;
  }
  for (uint32_t row = 0; row < count; row += piece.rows) {
    for (uint32_t block = 0; block < blocks; block += piece.blocks) {
      makePiece({row, std::min(piece.rows, count - row), block, std::min(piece.blocks, blocks - block)}, x,
                tiles.emplace_back());
    }
  }
}

/// Returns one step of the blocks of a piece as rows, lanes, 1, blocks.
TileView QuantizedRows::factorsOf(const Piece &piece, uint32_t step) const {
  const auto stride = uint32_t(sizes.stepsPerBlock());
  TileView result =
      slice(slice(factors, 0, piece.row, piece.rows, chip), 3, piece.block * stride + step, piece.blocks, chip);
  result.tensor.strides[3] *= int32_t(stride);
  return result;
}

/// Loads a piece in two orders: |whole| has the complete blocks in every lane, as rows, lanes, blocks, entries;
/// |spread| has the entries of a block over the lanes, as blocks, entries, 1, rows. Entries behind the last one are 0.
void QuantizedRows::loadPiece(const Piece &piece, const TileView &x, const TileView &whole, const TileView &spread,
                              Tile &tile) const {
  const auto block = uint32_t(sizes.block), last = uint32_t(sizes.depth % sizes.block);
  const bool hasShort = last && piece.block + piece.blocks == uint32_t(sizes.blocks());
  const uint32_t complete = piece.blocks - (hasShort ? 1 : 0);
  const int32_t byRow = x.tensor.strides[0], byEntry = x.tensor.strides[3], byBlock = byEntry * int32_t(block);
  auto copy = [&](const TileView &to, uint32_t firstBlock, std::array<int32_t, 4> strides) {
    hw::copy_command command;
    command.y = to.tensor, command.x = x.tensor, command.shape = to.shape;
    command.x.offset += int64_t(begin + piece.row) * byRow + int64_t(piece.block + firstBlock) * byBlock;
    std::copy(strides.begin(), strides.end(), command.x.strides);
    tile.loads.push_back(hw::encode(command));
  };
  auto clear = [&](const TileView &to) {
    hw::fill_command command;
    command.y = to.tensor, command.shape = to.shape, command.value = 0;
    tile.loads.push_back(hw::encode(command));
  };
  auto loadBlocks = [&](const TileView &to, unsigned blockDim, unsigned entryDim, std::array<int32_t, 4> strides) {
    if (complete) {
      copy(slice(to, blockDim, 0, complete, chip), 0, strides);
    }
    if (hasShort) {
      TileView of = slice(to, blockDim, complete, 1, chip);
      clear(slice(of, entryDim, last, block - last, chip));
      copy(slice(of, entryDim, 0, last, chip), complete, strides);
    }
  };
  loadBlocks(whole, 2, 3, {byRow, 0, byBlock, byEntry});
  loadBlocks(spread, 0, 1, {byBlock, byEntry, 0, byRow});
}

/// Computes the second factor of each block: the sum of its integers, in every lane, times the scale.
void QuantizedRows::addTotals(const Piece &piece, const TileView &scales, const TileView &of, Tile &tile) {
  if (piece.row == 0 && piece.block == 0) {
    hw::fill_command fill;
    fill.y = ones->tensor, fill.shape = ones->shape, fill.value = 1;
    tile.loads.push_back(hw::encode(fill));
  }
  const TileView totals = factorsOf(piece, 1);
  hw::conv_command conv;
  conv.y = totals.tensor, conv.x = of.tensor, conv.w = ones->tensor;
  conv.y.strides[0] = totals.tensor.strides[3], conv.y.strides[3] = totals.tensor.strides[0];
  conv.shape = {{piece.blocks, chip.lanes, 1, piece.rows}}, conv.channels = uint32_t(sizes.block);
  conv.rows = 1, conv.columns = uint16_t(piece.rows);
  tile.computes.push_back(hw::encode(conv));
  compute(stream, {{Op::mul, 4, 0, 1, 0}}, totals, {totals, scales}, tile);
}

void QuantizedRows::makePiece(const Piece &piece, const TileView &x, Tile &tile) {
  const Shape numbers = {{piece.rows, chip.lanes, 1, piece.blocks}};
  const auto block = uint32_t(sizes.block);
  LocalBudget localBudget(stream);
  TileView whole = localBudget.allocate({{piece.rows, chip.lanes, piece.blocks, block}}, Type::f32),
           spread = localBudget.allocate({{piece.blocks, block, 1, piece.rows}}, Type::f32),
           largest = localBudget.allocate(numbers, Type::f32), smallest = localBudget.allocate(numbers, Type::f32),
           inverse = localBudget.allocate(numbers, Type::f32);
  loadPiece(piece, x, whole, spread, tile);
  for (auto [to, kind] : {std::pair(largest, Reduction::largest), std::pair(smallest, Reduction::smallest)}) {
    to.tensor.strides[2] = to.tensor.strides[3]; // a row of |whole| for each block
    reduce(to, whole, kind, tile);
  }
  const TileView scales = factorsOf(piece, 0);
  compute(stream, scaleProgram(), scales, {largest, smallest}, tile);
  compute(stream, inverseProgram(), inverse, {largest, smallest}, tile);
  TileView rounded = slice(slice(integers, 0, piece.block, piece.blocks, chip), 3, piece.row, piece.rows, chip);
  const int32_t byBlock = inverse.tensor.strides[3], byRow = inverse.tensor.strides[0];
  inverse.tensor.strides[0] = byBlock, inverse.tensor.strides[1] = inverse.tensor.strides[2] = 0;
  inverse.tensor.strides[3] = byRow;
  compute(stream, {{Op::mul, 4, 0, 1, 0}, {Op::roundEven, 4, 4, 0, 0}}, rounded, {spread, inverse}, tile);
  if (sizes.hasMins) {
    addTotals(piece, scales, rounded, tile);
  }
}

} // namespace tessera::npu
