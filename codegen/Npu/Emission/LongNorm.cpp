//===- LongNorm.cpp - Normalisation of rows larger than a lane ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/LongNorm.h"

#include "bmodel/numerics_float.h"
#include "llvm/Support/MathExtras.h"

namespace hw = bmodel::npu;
using bmodel::npu::Op;
using bmodel::npu::Type;

namespace tessera::npu {
namespace {

constexpr uint32_t kPartial = bmodel::numerics::OrderedSum::kPartial;

hw::Instruction number(uint8_t to, double value) {
  return {Op::constant, to, 0, 0, llvm::bit_cast<uint32_t>(float(value))};
}

/// Adds |count| terms of each row from element |first| on to partial sums, |count| being whole rounds of them or less
/// than one. Products of terms with themselves take the sums one by one: a dot reads one factor for a row of the other.
void addTerms(const TileView &sums, const TileView &terms, uint32_t first, uint32_t count, bool squares, bool isBegin,
              Tile &tile) {
  if (!count) {
    return;
  }
  uint32_t width = std::min(count, kPartial), channels = terms.dim(1);
  int32_t element = int32_t(hw::sizeOf(terms.tensor.type)), round = int32_t(kPartial) * element;
  hw::dot_command dot;
  dot.steps = llvm::divideCeil(count, kPartial);
  dot.b = terms.tensor, dot.b.offset += uint64_t(first) * uint32_t(element);
  dot.y = sums.tensor;
  dot.b.strides[2] = round, dot.b.strides[3] = element;
  dot.shape = {{1, channels, 1, width}};
  if (squares) {
    dot.shape = {{width, channels, 1, 1}};
    dot.b.strides[0] = element, dot.y.strides[0] = int32_t(sizeof(float));
    dot.a = dot.b, dot.a.strides[2] = 0, dot.a.strides[3] = round;
  }
  if (!isBegin) {
    dot.s = dot.y;
  }
  tile.computes.push_back(hw::encode(dot));
}

class LongNormTiles : LongNorm {
public:
  explicit LongNormTiles(const LongNorm &norm) : LongNorm(norm) {}
  std::vector<Tile> make();

private:
  uint32_t elementsOfPiece() const;
  void makeRows(uint32_t row, uint32_t rows);
  void eachPiece(uint32_t row, uint32_t rows, llvm::function_ref<void(const Shape &begin, const Shape &part)> visit);
  TileView loadCentred(const Shape &begin, const Shape &part, const TileView *mean, LocalBudget &localBudget,
                       Tile &tile);
  TileView sumOf(uint32_t row, uint32_t rows, const TileView *mean, bool squares);
  void finish(const Shape &begin, const Shape &part, const TileView *mean, const TileView &factor);

  std::vector<Tile> tiles;
};

uint32_t LongNormTiles::elementsOfPiece() const {
  uint64_t each = hw::sizeOf(x.tensor.type) + sizeof(float) + hw::sizeOf(targets.front().tensor.type);
  for (const TileView &parameter : parameters) {
    each += hw::sizeOf(parameter.tensor.type);
  }
  constexpr uint64_t kSums = 1024; // partial and whole ones, rounded up to ports
  uint64_t fit = (chip.laneBytes / 2 - kSums) / each;
  return uint32_t(std::max<uint64_t>(fit / kPartial, 1) * kPartial);
}

void LongNormTiles::eachPiece(uint32_t row, uint32_t rows,
                              llvm::function_ref<void(const Shape &begin, const Shape &part)> visit) {
  uint32_t size = targets.front().dim(3), piece = elementsOfPiece();
  for (uint32_t at = 0; at < size; at += piece) {
    tiles.emplace_back();
    visit({{0, row, 0, at}}, {{1, rows, 1, std::min(piece, size - at)}});
  }
}

/// A piece of the rows less the mean, where there is one.
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

/// The sum of each row's elements less the mean, or of their squares.
TileView LongNormTiles::sumOf(uint32_t row, uint32_t rows, const TileView *mean, bool squares) {
  LocalBudget across(stream);
  TileView sums = across.keep({{1, rows, 1, kPartial}}, Type::f32), total = across.keep({{1, rows, 1, 1}}, Type::f32);
  eachPiece(row, rows, [&](const Shape &begin, const Shape &part) {
    LocalBudget localBudget(stream);
    Tile &tile = tiles.back();
    TileView terms = loadCentred(begin, part, mean, localBudget, tile);
    uint32_t rest = part.dims[3] % kPartial, whole = part.dims[3] - rest;
    addTerms(sums, terms, 0, whole, squares, begin.dims[3] == 0, tile);
    addTerms(sums, terms, whole, rest, squares, false, tile);
  });
  reduce(total, sums, Reduction::sum, tiles.back());
  return total;
}

void LongNormTiles::finish(const Shape &begin, const Shape &part, const TileView *mean, const TileView &factor) {
  LocalBudget localBudget(stream);
  Tile &tile = tiles.back();
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

void LongNormTiles::makeRows(uint32_t row, uint32_t rows) {
  std::optional<TileView> mean;
  if (!isRms) {
    mean = sumOf(row, rows, nullptr, false);
    compute(stream, programs.mean, *mean, {*mean}, tiles.back());
  }
  const TileView *centre = mean ? &*mean : nullptr;
  TileView factor = sumOf(row, rows, centre, true);
  compute(stream, programs.factor, factor, {factor}, tiles.back());
  eachPiece(row, rows, [&](const Shape &begin, const Shape &part) { finish(begin, part, centre, factor); });
}

std::vector<Tile> LongNormTiles::make() {
  uint32_t rows = targets.front().dim(1);
  for (uint32_t row = 0; row < rows; row += chip.lanes) {
    makeRows(row, std::min(chip.lanes, rows - row));
  }
  return std::move(tiles);
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

uint64_t LongNorm::bytesAtOnce() const { return chip.laneBytes; }

} // namespace tessera::npu
