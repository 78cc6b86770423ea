//===- Resize.cpp - Enlarging and interpolation on the NPU ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Contraction/Contraction.h"
#include "codegen/Npu/Emission/EmissionInterface.h"
#include "codegen/Npu/Emission/Models.h"

#include <numeric>

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Op;
using bmodel::npu::Type;
namespace {

/// Largest step between rows of the result that one command computes.
constexpr uint32_t kMostPhases = 16;
/// Maximum number of commands that place repetitions one by one. Beyond, picking elements by index is faster.
constexpr uint32_t kMostRepetitions = 16;

/// Source indices along one dim: |taps| for each element of the result.
struct Axis {
  std::vector<int32_t> indices;
  uint32_t taps = 1, size = 0;
  std::optional<TileView> weights; ///< [size, taps], in off-chip memory; nothing: a single tap of weight 1

  int32_t at(uint32_t place, uint32_t tap) const { return indices[size_t(place) * taps + tap]; }
  /// Returns how often each of |from| elements is repeated, or 0 if not all are repeated equally often in order.
  uint32_t factorOf(uint32_t from) const {
    uint32_t factor = size / from;
    for (uint32_t place = 0; place < size; ++place) {
      if (factor == 0 || taps != 1 || at(place, 0) != int32_t(place / factor)) {
        return 0;
      }
    }
    return factor * from == size ? factor : 0;
  }
};

/// Rows first, first + step, ... of a result for which each tap advances by a constant number of rows of x.
struct RowRun {
  uint32_t first, step, count;
  SmallVector<int32_t> strides; ///< by tap, in rows of x
};

/// Cuts rows [begin, end) into runs of every |step|-th row.
std::vector<RowRun> runsOf(const Axis &rows, uint32_t begin, uint32_t end, uint32_t step) {
  std::vector<RowRun> runs;
  for (uint32_t phase = begin; phase < std::min(end, begin + step); ++phase) {
    for (uint32_t row = phase; row < end;) {
      RowRun run{row, step, 1, SmallVector<int32_t>(rows.taps, 0)};
      for (uint32_t next = row + step; next < end; next += step, ++run.count) {
        bool walks = true;
        for (uint32_t tap = 0; tap < rows.taps; ++tap) {
          int32_t stride = rows.at(next, tap) - rows.at(next - step, tap);
          run.strides[tap] = run.count == 1 ? stride : run.strides[tap];
          walks = walks && stride >= 0 && stride == run.strides[tap];
        }
        if (!walks) {
          break;
        }
      }
      row += run.count * step;
      if (run.count == 1) {
        run.strides.assign(rows.taps, 0);
      }
      runs.push_back(run);
    }
  }
  return runs;
}

/// Returns the runs for the step that needs the fewest.
std::vector<RowRun> fewestRuns(const Axis &rows, uint32_t begin, uint32_t end) {
  std::vector<RowRun> best = runsOf(rows, begin, end, 1);
  for (uint32_t step = 2; step <= std::min(kMostPhases, end - begin); ++step) {
    std::vector<RowRun> runs = runsOf(rows, begin, end, step);
    if (runs.size() < best.size()) {
      best = std::move(runs);
    }
  }
  return best;
}

/// Builds the commands of one resize, tile by tile.
class ResizeTiles {
public:
  ResizeTiles(CommandStream &stream) : stream(stream), chip(stream.chip) {}

  TileView x, y;
  Axis rows, columns;

  void build(const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile);
  void prepare();

private:
  /// Returns the columns that one tap sees for each column of the result. The rows are those of |from|.
  TileView columnsOf(const TileView &from, uint32_t tap, const Shape &begin, LocalBudget &localBudget, Tile &tile);
  void addTap(const RowRun &run, uint32_t rowTap, uint32_t columnTap, const TileView &picked, const TileView &result,
              Tile &tile);

  CommandStream &stream;
  const Chip &chip;
  SmallVector<std::optional<TileView>> tables;                    ///< by column tap, in off-chip memory
  SmallVector<std::optional<TileView>> keptTables;                ///< likewise, in local memory
  std::optional<TileView> keptColumns, rowWeights, columnWeights; ///< weights of the tile, in local memory
  uint32_t firstSource = 0, firstResult = 0;                      ///< first rows of the tile in x and in the result
};

void ResizeTiles::prepare() {
  for (uint32_t tap = 0; tap < columns.taps; ++tap) {
    std::vector<int32_t> table;
    for (uint32_t place = 0; place < columns.size; ++place) {
      table.push_back(columns.at(place, tap));
    }
    TileView &result = tables.emplace_back(TileView()).value();
    result.shape = {{1, 1, 1, columns.size}};
    result.tensor = {.offset = stream.addConstant({reinterpret_cast<const char *>(table.data()), table.size() * 4}),
                     .strides = {0, 0, 0, 4},
                     .region = Region::constants,
                     .type = Type::i32};
  }
  keptTables.resize(columns.taps);
}

TileView ResizeTiles::columnsOf(const TileView &from, uint32_t tap, const Shape &begin, LocalBudget &localBudget,
                                Tile &tile) {
  TileView result = from;
  result.shape.dims[3] = columns.size;
  if (from.dim(3) == 1) {
    result.tensor.strides[3] = 0;
    return result;
  }
  if (columns.factorOf(from.dim(3)) == 1) {
    return result;
  }
  result = localBudget.allocate(result.shape, from.tensor.type);
  hw::pick_command pick;
  pick.y = result.tensor, pick.x = from.tensor, pick.shape = result.shape, pick.columns = from.dim(3);
  pick.index = loadPerLane(*tables[tap], begin, result.dim(1), chip, localBudget, tile, keptTables[tap]).tensor;
  tile.computes.push_back(hw::encode(pick));
  return result;
}

/// Adds the elements that a row tap and a column tap see, multiplied by the product of their weights.
void ResizeTiles::addTap(const RowRun &run, uint32_t rowTap, uint32_t columnTap, const TileView &picked,
                         const TileView &result, Tile &tile) {
  TileView to = result, from = picked;
  to.shape.dims[2] = from.shape.dims[2] = run.count;
  to.tensor.offset += uint64_t(run.first - firstResult) * uint64_t(to.tensor.strides[2]);
  to.tensor.strides[2] *= int32_t(run.step);
  from.tensor.offset += uint64_t(rows.at(run.first, rowTap) - int32_t(firstSource)) * uint64_t(from.tensor.strides[2]);
  from.tensor.strides[2] *= run.strides[rowTap];
  bool isFirst = rowTap == 0 && columnTap == 0;
  SmallVector<TileView> operands = {from};
  uint8_t weight = 0; // register of the weight
  if (rowWeights) {
    TileView each = *rowWeights;
    each.tensor.offset += (uint64_t(run.first - firstResult) * rows.taps + rowTap) * sizeof(float);
    each.tensor.strides[2] *= int32_t(run.step), each.tensor.strides[3] = 0;
    weight = uint8_t(operands.size()), operands.push_back(each);
  }
  Instructions program;
  if (columnWeights) {
    TileView each = *columnWeights;
    each.tensor.offset += columnTap * sizeof(float);
    if (weight) {
      program.push_back({Op::mul, 4, weight, uint8_t(operands.size()), 0});
    }
    weight = weight ? 4 : uint8_t(operands.size()), operands.push_back(each);
  }
  if (!weight) {
    program = {{Op::maximum, 4, 0, 0, 0}};
  } else if (isFirst) {
    program.push_back({Op::mul, 4, 0, weight, 0});
  } else {
    program.push_back({Op::mulAdd, 4, 0, weight, uint32_t(operands.size())});
    operands.push_back(to);
  }
  compute(stream, program, to, operands, tile);
}

void ResizeTiles::build(const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile) {
  firstResult = begin.dims[2];
  uint32_t end = firstResult + size.dims[2];
  auto bounds = std::minmax_element(rows.indices.begin() + size_t(firstResult) * rows.taps,
                                    rows.indices.begin() + size_t(end) * rows.taps);
  firstSource = uint32_t(*bounds.first);
  TileView from = slice(slice(x, 0, begin.dims[0], size.dims[0], chip), 1, begin.dims[1], size.dims[1], chip);
  from = slice(from, 2, firstSource, uint32_t(*bounds.second) - firstSource + 1, chip);
  TileView to = tileOf(y, begin, size, chip);
  localBudget.lane = laneOf({to, from});
  TileView local = load(from, localBudget, tile), result = resultOf(to, localBudget);
  rowWeights.reset(), columnWeights.reset();
  if (columns.weights) {
    columnWeights = loadPerLane(*columns.weights, begin, size.dims[1], chip, localBudget, tile, keptColumns);
    int32_t *strides = columnWeights->tensor.strides;
    strides[0] = strides[2] = 0, strides[3] *= int32_t(columns.taps);
  }
  if (rows.weights) {
    TileView part = slice(*rows.weights, 2, firstResult, size.dims[2], chip);
    std::optional<TileView> own;
    LocalBudget alone(stream);
    alone.lane = localBudget.lane;
    rowWeights = loadPerLane(part, Shape{{0, begin.dims[1], 0, 0}}, size.dims[1], chip, alone, tile, own);
    localBudget.used += alone.liveAcross, rowWeights->tensor.strides[0] = 0;
  }
  SmallVector<TileView> picked;
  for (uint32_t tap = 0; tap < columns.taps; ++tap) {
    picked.push_back(columnsOf(local, tap, begin, localBudget, tile));
  }
  bool rounds = (columnWeights || rowWeights) && result.tensor.type != Type::f32; // round once, after the sum
  TileView sums = rounds ? localBudget.allocate(to.shape, Type::f32) : result;
  for (const RowRun &run : fewestRuns(rows, firstResult, end)) {
    for (uint32_t rowTap = 0; rowTap < rows.taps; ++rowTap) {
      for (uint32_t columnTap = 0; columnTap < columns.taps; ++columnTap) {
        addTap(run, rowTap, columnTap, picked[columnTap], sums, tile);
      }
    }
  }
  if (rounds) {
    compute(stream, {{Op::maximum, 4, 0, 0, 0}}, result, sums, tile);
  }
  store(result, to, tile);
}

/// Returns every |factor|-th element along a dim, from |first| on.
TileView everyOther(TileView place, unsigned dim, uint32_t factor, uint32_t first) {
  place.tensor.offset += int64_t(first) * place.tensor.strides[dim];
  place.tensor.strides[dim] *= int32_t(factor);
  place.shape.dims[dim] /= factor;
  return place;
}

/// Emits nearest-neighbour resizing by integral factors: each repetition is an identity map to its positions in the
/// result.
llvm::Error appendRepetitions(const ResizeTiles &resize, uint32_t rows, uint32_t columns, Tiler &tiler) {
  const Chip &chip = tiler.stream.chip;
  const uint32_t factors[4] = {1, 1, rows, columns};
  const Instructions same = {{Op::maximum, 4, 0, 0, 0}};
  auto build = [&](const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile) {
    TileView from = resize.x, to = resize.y;
    for (unsigned dim = 0; dim < 4; ++dim) {
      from = slice(from, dim, begin.dims[dim] / factors[dim], size.dims[dim] / factors[dim], chip);
      to = slice(to, dim, begin.dims[dim], size.dims[dim], chip);
    }
    localBudget.lane = laneOf({to, from});
    TileView local = load(from, localBudget, tile), result = resultOf(to, localBudget);
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint32_t column = 0; column < columns; ++column) {
        TileView part = everyOther(everyOther(result, 2, rows, row), 3, columns, column);
        compute(tiler.stream, same, part, local, tile);
      }
    }
    store(result, to, tile);
  };
  return tiler.append(resize.y.shape, Shape{{1, chip.lanes, rows, 0}}, build);
}

/// Returns true if elements are moved without interpolation.
bool onlyMoves(device::ResizeOp op) {
  for (size_t i = 0; i < op.getTables().size(); i += 2) {
    if (cast<RankedTensorType>(op.getTables()[i].getType()).getDimSize(1) != 1) {
      return false;
    }
  }
  return true;
}

/// Views a tensor of four dims as n, c, h, w. With other ranks, all leading dims are c.
View viewOf(ArrayRef<int64_t> dims) {
  size_t rank = dims.size();
  View view{{1, 1, 1, dims.back()}, {0, 0, 0, 1}};
  view.sizes[2] = rank > 1 ? dims[rank - 2] : 1, view.strides[2] = view.sizes[3];
  view.sizes[0] = rank == 4 ? dims[0] : 1;
  view.sizes[1] = ShapedType::getNumElements(dims) / (view.sizes[0] * view.sizes[2] * view.sizes[3]);
  view.strides[1] = view.sizes[2] * view.sizes[3], view.strides[0] = view.strides[1] * view.sizes[1];
  return view;
}

/// Reads the tables of the op's |i|-th resized dim into |axis|.
llvm::Error readTables(device::ResizeOp op, size_t i, bool isLast, bool moves, Axis &axis, OperandPlacer &operands) {
  Value table = op.getTables()[2 * i];
  llvm::Expected<std::vector<int32_t>> indices = constantValues<int32_t>(table, "a table of indices");
  int64_t taps = npu::typeOf(table).getDimSize(1);
  SmallVector<int64_t> sizes = {1, 1, axis.size, taps}, strides = {0, 0, taps, 1};
  if (isLast) { // contiguous
    sizes = {1, 1, 1, axis.size * taps}, strides = {0, 0, 0, 1};
  }
  llvm::Expected<TileView> weights = operands.placeOutside(op.getTables()[2 * i + 1], sizes, strides);
  if (!indices || !weights) {
    return llvm::joinErrors(indices.takeError(), weights.takeError());
  }
  axis.indices = std::move(*indices), axis.taps = uint32_t(taps);
  if (!moves) {
    axis.weights = *weights;
  }
  return llvm::Error::success();
}

llvm::Error emitResize(device::ResizeOp op, EmissionContext &context) {
  RankedTensorType xType = npu::typeOf(op.getX()), yType = npu::typeOf(op.getY());
  int64_t rank = xType.getRank();
  bool moves = onlyMoves(op);
  if (op.getAxes().front() < rank - 2) {
    return reject("resizes other than the last two dims, which is not supported yet");
  }
  if (xType.getElementType().isInteger(32) || (!moves && isa<IntegerType>(xType.getElementType()))) {
    return reject("interpolates integers, or resizes 32-bit integers, which is not supported yet");
  }
  View xView = viewOf(xType.getShape()), yView = viewOf(yType.getShape());
  llvm::Expected<TileView> x = context.operands.place(op.getX(), xView.sizes, xView.strides);
  llvm::Expected<TileView> y = context.operands.place(op.getY(), yView.sizes, yView.strides);
  if (!x || !y) {
    return llvm::joinErrors(x.takeError(), y.takeError());
  }
  ResizeTiles resize(context.stream);
  resize.x = *x, resize.y = *y;
  for (unsigned dim : {2, 3}) { // identity unless a table is given
    Axis &axis = dim == 2 ? resize.rows : resize.columns;
    axis.size = y->dim(dim), axis.indices.resize(axis.size);
    std::iota(axis.indices.begin(), axis.indices.end(), 0);
  }
  for (auto [i, at] : llvm::enumerate(op.getAxes())) {
    Axis &axis = at == rank - 1 ? resize.columns : resize.rows;
    if (llvm::Error error = readTables(op, i, at == rank - 1, moves, axis, context.operands)) {
      return error;
    }
  }
  uint32_t rowFactor = resize.rows.factorOf(x->dim(2)), columnFactor = resize.columns.factorOf(x->dim(3));
  if (moves && rowFactor && columnFactor && rowFactor * columnFactor <= kMostRepetitions) {
    return appendRepetitions(resize, rowFactor, columnFactor, context.tiler);
  }
  resize.prepare();
  return context.tiler.append(y->shape, Shape{{1, context.chip.lanes, 1, 0}},
                              [&](const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile) {
                                resize.build(begin, size, localBudget, tile);
                              });
}

struct ResizeModel : EmissionInterface::ExternalModel<ResizeModel, device::ResizeOp> {
  llvm::Error emit(Operation *op, EmissionContext &context) const {
    return emitResize(cast<device::ResizeOp>(op), context);
  }
};

} // namespace

void attachResizeModels(MLIRContext *context) { device::ResizeOp::attachInterface<ResizeModel>(*context); }

} // namespace tessera::npu
