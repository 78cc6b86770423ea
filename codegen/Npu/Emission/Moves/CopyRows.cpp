//===- CopyRows.cpp - Copies of short rows --------------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Off-chip memory moves whole bursts, so moving a part of each short row costs as much as moving the whole rows. If
// such parts come from contiguous rows, or together make up contiguous rows, the rows are loaded or stored as one run
// of bytes, and are split or assembled in local memory.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Emission/Moves/Copies.h"

#include "llvm/ADT/STLExtras.h"

namespace hw = bmodel::npu;
using llvm::ArrayRef;

namespace tessera::npu {
namespace {

/// Least speed-up over direct moves that is worth using local memory.
constexpr double kLeastSpared = 1.5;

int64_t sizeOf(const TileView &place) { return int64_t(hw::sizeOf(place.tensor.type)); }
bool isDense(const TileView &place) { return place.tensor.strides[1] == int64_t(place.dim(3)) * sizeOf(place); }

/// Returns true if a move copies a run of elements from each row to another row. The channels of the views are rows.
bool movesRows(const Transfer &move) {
  const auto &[to, from, inRow, spare] = move;
  auto isRows = [](const TileView &place) {
    const int32_t *strides = place.tensor.strides;
    int64_t bytes = int64_t(place.dim(3)) * sizeOf(place);
    return place.dim(0) == 1 && place.dim(2) == 1 && place.dim(1) > 1 &&
           (place.dim(3) == 1 || strides[3] == sizeOf(place)) && (place.isLocal() || strides[1] >= bytes);
  };
  bool canRead = from.isLocal()
                     ? !to.isLocal()
                     : isDense(from) || (spare && from.tensor.strides[1] <= kMostSpread * from.dim(3) * sizeOf(from));
  return isRows(to) && isRows(from) && canRead && to.directStores.empty() && to.tensor.type == from.tensor.type;
}

/// Builds the tiles of moves to the same rows.
class RowTiles {
public:
  RowTiles(ArrayRef<Transfer> moves, const Chip &chip) : moves(moves), chip(chip) {
    const TileView &front = moves.front().to;
    int64_t end = int64_t(front.tensor.offset);
    for (const Transfer &move : moves) {
      covers = covers && !move.to.isLocal() && int64_t(move.to.tensor.offset) == end;
      end += int64_t(move.to.dim(3)) * sizeOf(move.to);
    }
    covers = covers && end - int64_t(front.tensor.offset) == front.tensor.strides[1];
  }

  void build(const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile) const {
    auto cut = [&](const TileView &place) { return slice(place, 1, begin.dims[1], size.dims[1], chip); };
    TileView whole = cut(moves.front().to), rows; // rows: assembled rows
    if (covers) {
      whole.shape.dims[3] = uint32_t(whole.tensor.strides[1] / sizeOf(whole));
      rows = localBudget.allocate(whole.shape, whole.tensor.type);
    }
    for (const Transfer &move : moves) {
      TileView from = cut(move.from), to = cut(move.to);
      if (covers) {
        uint64_t at = (to.tensor.offset - whole.tensor.offset) / uint64_t(sizeOf(to));
        to = slice(rows, 3, uint32_t(at), to.dim(3), chip);
      }
      if (!from.isLocal() && (!covers || !isDense(from))) {
        from = taken(from, move.inRow, localBudget, tile);
      }
      copy(from, to.tensor, covers ? tile.loads : tile.stores);
      if (to.copy.region != Region::none) {
        copy(from, to.copy, tile.stores);
      }
    }
    if (covers) {
      copy(rows, whole.tensor, tile.stores);
    }
  }

private:
  /// Loads whole rows and returns the part to move.
  TileView taken(TileView from, int64_t inRow, LocalBudget &localBudget, Tile &tile) const {
    uint32_t length = from.dim(3);
    if (!isDense(from)) {
      from.tensor.offset -= uint64_t(inRow * sizeOf(from));
      from.tensor.strides[3] = int32_t(sizeOf(from));
      from.shape.dims[3] = uint32_t(from.tensor.strides[1] / sizeOf(from));
      return slice(load(from, localBudget, tile), 3, uint32_t(inRow), length, chip);
    }
    return load(from, localBudget, tile);
  }

  static void copy(const TileView &from, const Tensor &to, std::vector<Descriptor> &commands) {
    hw::copy_command command;
    command.x = from.tensor, command.y = to, command.shape = from.shape;
    commands.push_back(hw::encode(command));
  }

  ArrayRef<Transfer> moves;
  const Chip &chip;
  bool covers = true; ///< the moves together fill the whole rows
};

/// Returns true if two moves write to the same rows.
bool sharesTarget(const Transfer &a, const Transfer &b) {
  const Tensor &x = a.to.tensor, &y = b.to.tensor;
  return !a.to.isLocal() && a.to.dim(1) == b.to.dim(1) && x.region == y.region && x.strides[1] == y.strides[1] &&
         apart(a.to, b.to) < uint64_t(x.strides[1]);
}

} // namespace

/// Emits the moves that are faster row by row, and removes them from |moves|.
llvm::Error emitRows(std::vector<Transfer> &moves, EmissionContext &context) {
  const Chip &chip = context.chip;
  Tiler &tiler = context.tiler;
  std::vector<std::vector<Transfer>> sets;
  std::vector<Transfer> others;
  for (const Transfer &move : moves) {
    if (!movesRows(move)) {
      others.push_back(move);
      continue;
    }
    auto found = llvm::find_if(sets, [&](const auto &set) { return sharesTarget(set.front(), move); });
    (found == sets.end() ? sets.emplace_back() : *found).push_back(move);
  }
  moves = std::move(others);
  for (std::vector<Transfer> &set : sets) {
    llvm::sort(set, [](const Transfer &a, const Transfer &b) { return a.to.tensor.offset < b.to.tensor.offset; });
    RowTiles tiles(set, chip);
    const Shape &shape = set.front().to.shape;
    auto build = [&](const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile) {
      tiles.build(begin, size, localBudget, tile);
    };
    if (tiler.cyclesToMove(shape, build) * kLeastSpared > directCycles(set, chip)) {
      llvm::append_range(moves, set);
      continue;
    }
    if (llvm::Error error = tiler.append(shape, Shape{{1, chip.lanes, 1, 0}}, build)) {
      return error;
    }
  }
  return llvm::Error::success();
}

} // namespace tessera::npu
