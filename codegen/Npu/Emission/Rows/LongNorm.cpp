//===- LongNorm.cpp - Normalisation of rows larger than a lane ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/Rows/LongNorm.h"

#include "codegen/Npu/Emission/Rows/RowPieces.h"

namespace hw = bmodel::npu;
using bmodel::npu::Op;
using bmodel::npu::Type;

namespace tessera::npu {
namespace {

hw::Instruction number(uint8_t to, double value) {
  return {Op::constant, to, 0, 0, llvm::bit_cast<uint32_t>(float(value))};
}

class LongNormTiles : LongNorm {
public:
  explicit LongNormTiles(const LongNorm &norm) : LongNorm(norm), pieces(norm.targets.front().shape, bytes(), stream) {}
  std::vector<Tile> make();

private:
  uint64_t bytes() const;
  void makeRows(RowPieces::Rows rows);
  TileView loadCentred(const Shape &begin, const Shape &part, const TileView *mean, LocalBudget &localBudget,
                       Tile &tile);
  TileView sumOf(RowPieces::Rows rows, const TileView *mean, bool squares);
  void finish(const Shape &begin, const Shape &part, const TileView *mean, const TileView &factor,
              LocalBudget &localBudget, Tile &tile);

  RowPieces pieces;
};

/// Returns the bytes per element of all buffers: loaded, centred and stored elements, and parameters.
uint64_t LongNormTiles::bytes() const {
  uint64_t each = hw::sizeOf(x.tensor.type) + sizeof(float) + hw::sizeOf(targets.front().tensor.type);
  for (const TileView &parameter : parameters) {
    each += hw::sizeOf(parameter.tensor.type);
  }
  return each;
}

/// Loads a segment of the rows and subtracts the mean, if there is one.
TileView LongNormTiles::loadCentred(const Shape &begin, const Shape &part, const TileView *mean,
                                    LocalBudget &localBudget, Tile &tile) {
  TileView from = load(tileOf(x, begin, part, chip), localBudget, tile);
  if (!mean) {
    return from;
  }
  TileView centred = localBudget.allocate(part, Type::f32);
  compute(stream, programs.centre, centred, {from, repeated(*mean)}, tile);
  return centred;
}

/// Returns the sum of each row's elements minus the mean, or of their squares.
TileView LongNormTiles::sumOf(RowPieces::Rows rows, const TileView *mean, bool squares) {
  return pieces.sum(rows, squares, [&](const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile) {
    return loadCentred(begin, part, mean, localBudget, tile);
  });
}

void LongNormTiles::finish(const Shape &begin, const Shape &part, const TileView *mean, const TileView &factor,
                           LocalBudget &localBudget, Tile &tile) {
  TileView to = tileOf(targets.front(), begin, part, chip);
  llvm::SmallVector<TileView> operands = {loadCentred(begin, part, mean, localBudget, tile), repeated(factor)};
  for (const TileView &parameter : parameters) {
    operands.push_back(load(tileOf(parameter, begin, part, chip), localBudget, tile));
  }
  TileView result = resultOf(to, localBudget);
  compute(stream, programs.finish, result, operands, tile);
  store(result, to, tile);
  for (const TileView &other : llvm::drop_begin(targets)) {
    storeToo(result, tileOf(other, begin, part, chip), tile);
  }
}

void LongNormTiles::makeRows(RowPieces::Rows rows) {
  std::optional<TileView> mean;
  if (!isRms) {
    mean = sumOf(rows, nullptr, false);
    compute(stream, programs.mean, *mean, {*mean}, pieces.tiles.back());
  }
  const TileView *centre = mean ? &*mean : nullptr;
  TileView factor = sumOf(rows, centre, true);
  compute(stream, programs.factor, factor, {factor}, pieces.tiles.back());
  pieces.eachPiece(rows, [&](const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile) {
    finish(begin, part, centre, factor, localBudget, tile);
  });
}

std::vector<Tile> LongNormTiles::make() {
  pieces.eachRows([&](RowPieces::Rows rows) { makeRows(rows); });
  return std::move(pieces.tiles);
}

} // namespace

NormPrograms::NormPrograms(device::NormOp op, int64_t size) {
  mean = {number(4, double(size)), {Op::div, 4, 0, 4, 0}};
  centre = {{Op::sub, 4, 0, 1, 0}};
  factor = {number(4, double(size)), {Op::div, 4, 0, 4, 0},  number(5, op.getEpsilon().convertToDouble()),
            {Op::add, 4, 4, 5, 0},   {Op::sqrt, 4, 4, 0, 0}, number(5, 1),
            {Op::div, 4, 5, 4, 0}};
  finish = {{Op::mul, 4, 0, 1, 0}};
  if (op.getScale() && op.getBias()) {
    finish.push_back({Op::mulAdd, 4, 4, 2, 3});
  } else if (op.getScale() || op.getBias()) {
    finish.push_back({op.getScale() ? Op::mul : Op::add, 4, 4, 2, 0});
  }
}

std::vector<Tile> LongNorm::make() const { return LongNormTiles(*this).make(); }

} // namespace tessera::npu
