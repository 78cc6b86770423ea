//===- CopyInterleaved.cpp - Interleaved moves ----------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Handles rows whose elements alternate between several sources. In off-chip memory, each element would be a burst.
// Therefore rows are assembled in local memory, and whole rows are stored.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Emission/Moves/Copies.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
namespace {

int32_t sizeOf(const TileView &place) { return int32_t(hw::sizeOf(place.tensor.type)); }

/// Returns the moves among |moves| that fill the same rows as |first|, covering each element once. Returns none if
/// elements remain uncovered.
std::vector<Transfer> rowsWith(ArrayRef<Transfer> moves, const Transfer &first) {
  int32_t stride = first.to.tensor.strides[3];
  std::vector<Transfer> found;
  llvm::SmallDenseSet<uint64_t> places;
  for (const Transfer &move : moves) {
    if (haveSameLayout(move.to, first.to) && apart(move.to, first.to) < uint64_t(std::max(stride, 0)) &&
        places.insert(move.to.tensor.offset).second) {
      found.push_back(move);
    }
  }
  llvm::sort(found, [](const Transfer &a, const Transfer &b) { return a.to.tensor.offset < b.to.tensor.offset; });
  bool isWhole = found.size() > 1 && int64_t(found.size()) * sizeOf(first.to) == stride &&
                 apart(found.back().to, found.front().to) == uint64_t(stride - sizeOf(first.to));
  return isWhole ? found : std::vector<Transfer>();
}

/// Sources of moves that read from the same row in off-chip memory, which is loaded once.
struct Row {
  Region of;
  uint64_t first, last; ///< offsets of the sources with the lowest and highest address
  std::optional<TileView> local;
};

/// Returns the row that contains the source |of|.
Row rowOf(const TileView &of, ArrayRef<Transfer> moves) {
  Row row{of.tensor.region, of.tensor.offset, of.tensor.offset, std::nullopt};
  for (const Transfer &move : moves) {
    const TileView &other = move.from;
    if (haveSameLayout(of, other) && apart(of, other) < uint64_t(std::max(of.tensor.strides[3], 0))) {
      row.first = std::min(row.first, other.tensor.offset), row.last = std::max(row.last, other.tensor.offset);
    }
  }
  return row;
}

/// Returns the part |of| of a source, which begins |shift| bytes after the source, in local memory.
TileView loadFrom(Row &row, const TileView &of, uint64_t shift, LocalBudget &localBudget, Tile &tile) {
  int32_t size = sizeOf(of), spread = of.tensor.strides[3] / size;
  uint64_t length = row.last - row.first;
  if (of.isLocal() || spread < 1 || spread > kMostSpread || length >= uint64_t(of.tensor.strides[3])) {
    return loadAnyLane(of, localBudget, tile);
  }
  if (!row.local) {
    TileView whole = of;
    whole.tensor.offset = row.first + shift, whole.tensor.strides[3] = size;
    whole.shape.dims[3] = (of.dim(3) - 1) * uint32_t(spread) + 1 + uint32_t(length / uint64_t(size));
    row.local = load(whole, localBudget, tile);
  }
  TileView result = *row.local;
  result.tensor.strides[3] *= spread, result.shape = of.shape;
  result.tensor.offset += of.tensor.offset - row.first - shift;
  return result;
}

/// Splits a single off-chip row into several, one per lane.
void spreadOverLanes(MutableArrayRef<Transfer> moves, uint32_t lanes) {
  uint32_t length = moves[0].to.dim(3), rows = std::min(lanes, length);
  while (length % rows) {
    --rows;
  }
  if (moves[0].to.dim(1) > 1 || llvm::any_of(moves, [](const Transfer &move) { return move.from.isLocal(); })) {
    return;
  }
  for (Transfer &move : moves) {
    for (TileView *place : {&move.to, &move.from}) {
      place->shape.dims[1] = rows, place->shape.dims[3] = length / rows;
      place->tensor.strides[1] = place->tensor.strides[3] * int32_t(length / rows);
    }
  }
}

} // namespace

llvm::Error emitInterleaved(std::vector<Transfer> &moves, EmissionContext &context) {
  const Chip &chip = context.chip;
  Tiler &tiler = context.tiler;
  for (size_t i = 0; i < moves.size();) {
    std::vector<Transfer> rows = rowsWith(ArrayRef(moves).drop_front(i), moves[i]);
    if (rows.empty() || rows[0].to.isLocal()) {
      ++i;
      continue;
    }
    const std::vector<Transfer> known = rows;
    spreadOverLanes(rows, chip.lanes);
    TileView to = rows[0].to;
    auto build = [&](const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile) {
      TileView target = tileOf(to, begin, part, chip);
      target.tensor.strides[3] = sizeOf(to), target.shape.dims[3] *= uint32_t(rows.size());
      TileView whole = localBudget.allocate(target.shape, to.tensor.type);
      SmallVector<Row> loaded;
      for (auto [k, move] : llvm::enumerate(rows)) {
        Row row = rowOf(move.from, rows);
        Row *same = llvm::find_if(loaded, [&](const Row &each) {
          return each.first == row.first && each.last == row.last && each.of == move.from.tensor.region;
        });
        same = same == loaded.end() ? &loaded.emplace_back(row) : same;
        TileView from = tileOf(move.from, begin, part, chip);
        hw::copy_command copy;
        copy.x = loadFrom(*same, from, from.tensor.offset - move.from.tensor.offset, localBudget, tile).tensor;
        copy.y = whole.tensor, copy.y.offset += k * uint64_t(sizeOf(to));
        copy.y.strides[3] *= int32_t(rows.size()), copy.shape = part;
        tile.stores.push_back(hw::encode(copy));
      }
      store(whole, target, tile);
    };
    if (tiler.cyclesToMove(to.shape, build) >= directCycles(known, chip)) {
      ++i;
      continue;
    }
    if (llvm::Error error = tiler.append(to.shape, Shape{{1, chip.lanes, 1, 1}}, build)) {
      return error;
    }
    llvm::erase_if(moves, [&](const Transfer &move) {
      return llvm::any_of(known, [&](const Transfer &each) {
        return each.to.tensor.offset == move.to.tensor.offset && haveSameLayout(each.to, move.to);
      });
    });
  }
  return llvm::Error::success();
}

} // namespace tessera::npu
