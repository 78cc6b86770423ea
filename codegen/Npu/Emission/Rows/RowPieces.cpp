//===- RowPieces.cpp - Rows that do not fit a lane ------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/Rows/RowPieces.h"

#include "bmodel/numerics_float.h"
#include "llvm/Support/MathExtras.h"

namespace hw = bmodel::npu;
using bmodel::npu::Type;

namespace tessera::npu {
namespace {

constexpr uint32_t kPartial = bmodel::numerics::OrderedSum::kPartial;

/// Adds |count| terms of each row, from element |first| on, to the partial sums. |count| is a multiple of the number of
/// partial sums, or less than it. Squares are added one partial sum at a time, because `dot` reads a single factor for
/// each row of the other operand.
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

uint32_t elementsOfPiece(uint64_t bytesOfElement, const Chip &chip) {
  constexpr uint64_t kSums = 1024; // partial and total sums, rounded up to ports
  uint64_t fit = (chip.laneBytes / 2 - kSums) / bytesOfElement;
  return uint32_t(std::max<uint64_t>(fit / kPartial, 1) * kPartial);
}

} // namespace

RowPieces::RowPieces(const Shape &whole, uint64_t bytesOfElement, CommandStream &stream)
    : whole(whole), elements(elementsOfPiece(bytesOfElement, stream.chip)), stream(stream) {}

void RowPieces::eachRows(llvm::function_ref<void(Rows rows)> visit) const {
  for (uint32_t row = 0; row < whole.dims[1]; row += stream.chip.lanes) {
    visit({row, std::min(stream.chip.lanes, whole.dims[1] - row)});
  }
}

void RowPieces::eachPiece(Rows rows, BuildTile visit) {
  for (uint32_t at = 0; at < whole.dims[3]; at += elements) {
    LocalBudget localBudget(stream);
    visit({{0, rows.begin, 0, at}}, {{1, rows.count, 1, std::min(elements, whole.dims[3] - at)}}, localBudget,
          tiles.emplace_back());
  }
}

TileView RowPieces::keep(Rows rows, uint32_t width) {
  return LocalBudget(stream).keep({{1, rows.count, 1, width}}, Type::f32);
}

TileView RowPieces::sum(Rows rows, bool squares, LoadTerms load) {
  TileView sums = keep(rows, kPartial), total = keep(rows, 1);
  eachPiece(rows, [&](const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile) {
    TileView terms = load(begin, part, localBudget, tile);
    uint32_t rest = part.dims[3] % kPartial, rounds = part.dims[3] - rest;
    addTerms(sums, terms, 0, rounds, squares, begin.dims[3] == 0, tile);
    addTerms(sums, terms, rounds, rest, squares, false, tile);
  });
  reduce(total, sums, Reduction::sum, tiles.back());
  return total;
}

void RowPieces::append(Tiler &tiler, llvm::function_ref<std::vector<Tile>()> make) {
  uint64_t bytes = tiler.stream.chip.laneBytes;
  tiler.appendTiles(tiler.surveys ? std::vector<Tile>() : make(), bytes, bytes);
}

bool rowsFit(const Shape &whole, BuildTile build, EmissionContext &context) {
  Tiler survey(context.stream);
  survey.surveys = true;
  llvm::cantFail(survey.append(whole, Shape{{0, context.chip.lanes, 0, 0}}, build)); // surveys do not reject anything
  return survey.minimum <= context.chip.laneBytes;
}

} // namespace tessera::npu
