//===- BlockMatMul.cpp - Matmuls of quantised rows and blocks of weights --===//
// SPDX-License-Identifier: Apache-2.0
//
// The rows are quantised first, by the formulas of docs/numerics.md. Every lane finds the scales of all blocks, because
// the lanes cannot exchange numbers: it loads the whole rows. The integers have the entries of a block over the lanes.
// Then each tile of columns takes
// - one `matmul`, whose images are the blocks: it stores f32(sum) of each block, row and column;
// - one `map`, which multiplies these by the weights' scales;
// - one `dot`, whose steps are the blocks: it adds them in their order, each with the row's scale in a fused
//   multiply-add. Minima are steps of their own between those of the sums.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Emission/Contraction/BlockWeights.h"
#include "codegen/Npu/Emission/EmissionInterface.h"
#include "codegen/Npu/Emission/Models.h"
#include "codegen/Npu/Stream/LoopNest.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Type;
namespace {

BlockSizes sizesOf(device::BlockMatMulOp op) {
  ArrayRef<int64_t> weights = op.getWeightShape();
  return {.rows = npu::typeOf(op.getY()).getNumElements() / weights[1],
          .depth = weights[0],
          .columns = weights[1],
          .block = std::min(int64_t(op.getBlock()), weights[0]),
          .hasMins = bool(op.getMins())};
}

/// Places an operand of the epilogue as rows (n) and columns (c).
llvm::Expected<TileView> placeExtra(device::BlockMatMulOp op, Value value, const BlockSizes &sizes,
                                    OperandPlacer &operands) {
  ArrayRef<int64_t> dims = npu::typeOf(op.getY()).getShape();
  LoopNest nest = broadcastNest({dims, npu::typeOf(value).getShape()});
  const int64_t byColumn = nest.strides[1].back();
  nest.sizes.pop_back(), nest.strides[0].pop_back(), nest.strides[1].pop_back();
  LoopNest rows = nest.simplified();
  if (rows.sizes.size() > 1) {
    return reject("has an epilogue that broadcasts over some of the leading dims, which is not supported yet");
  }
  return operands.place(value, {sizes.rows, sizes.columns, 1, 1},
                        {rows.sizes.empty() ? 0 : rows.strides[1][0], byColumn, 0, 0});
}

/// The tiles of one block matmul.
class BlockMatMul {
public:
  BlockMatMul(device::BlockMatMulOp op, EmissionContext &context)
      : op(op), context(context), stream(context.stream), chip(context.chip), sizes(sizesOf(op)) {}

  llvm::Error emit();

private:
  llvm::Error placeAll();
  llvm::Error setProgram();

  /// Bytes per lane of a tile of |groups| columns in each lane.
  uint64_t bytesOfTile(int64_t rows, int64_t groups) const;
  bool chooseSizes();
  std::vector<Tile> make();
  void addColumns(const QuantizedRows &rows, int64_t group, int64_t groups);
  TileView sumsOf(const QuantizedRows &rows, int64_t group, int64_t groups, LocalBudget &localBudget, Tile &tile);

  device::BlockMatMulOp op;
  EmissionContext &context;
  CommandStream &stream;
  const Chip &chip;
  const BlockSizes sizes;
  TileView x, y; ///< rows and entries; rows and columns
  BlockWeights weights;
  Instructions program; ///< of the epilogue
  SmallVector<TileView> extras;
  int64_t rowsAtOnce = 1, groupsAtOnce = 1;
  std::vector<Tile> tiles;
};

/// Sets the program of the epilogue, if there is one, and places its operands.
llvm::Error BlockMatMul::setProgram() {
  if (op.getEpilogue().empty()) {
    return llvm::Error::success();
  }
  if (op.getExtras().size() + 1 > hw::kMapOperands) {
    return reject("has more than three epilogue operands, which is not supported yet");
  }
  SmallVector<Interval> intervals = {intervalOf(op.getEpilogue().front().getArgument(0).getType())};
  for (Value extra : op.getExtras()) {
    llvm::Expected<TileView> place = placeExtra(op, extra, sizes, context.operands);
    if (!place) {
      return place.takeError();
    }
    extras.push_back(*place), intervals.push_back(intervalOf(npu::typeOf(extra).getElementType()));
  }
  llvm::Expected<Instructions> made = programOf(op.getEpilogue(), intervals, npu::typeOf(op.getY()).getElementType());
  if (made) {
    program = std::move(*made);
  }
  return made.takeError();
}

llvm::Error BlockMatMul::placeAll() {
  if (op.getPacking()) {
    return reject("has packed weights, which the chip does not support");
  }
  // All rows lie in all lanes, and blocks in lanes of their own, so they are read outside.
  llvm::Expected<TileView> from =
      context.operands.placeOutside(op.getX(), {sizes.rows, 1, 1, sizes.depth}, {sizes.depth, 0, 0, 1});
  llvm::Expected<TileView> to =
      context.operands.place(op.getY(), {sizes.rows, sizes.columns, 1, 1}, {sizes.columns, 1, 0, 0});
  if (!from || !to) {
    return llvm::joinErrors(from.takeError(), to.takeError());
  }
  x = *from, y = *to;
  if (llvm::Error error = setProgram()) {
    return error;
  }
  llvm::Expected<BlockWeights> placed = BlockWeights::place(op, sizes, stream);
  if (placed) {
    weights = *placed;
  }
  return placed.takeError();
}

uint64_t BlockMatMul::bytesOfTile(int64_t rows, int64_t groups) const {
  // Sums in steps, and sums, results and operands of the epilogue: one number per row and column each.
  const int64_t numbers = sizes.steps() + 2 + int64_t(extras.size());
  const uint64_t aligned = (5 + extras.size()) * chip.portBytes;
  const auto ofColumn = uint64_t(sizes.paddedDepth()) + uint64_t(sizes.steps() + rows * numbers) * sizeof(float);
  return uint64_t(groups) * ofColumn + aligned;
}

/// Chooses the rows that are quantised at once, as many as leave room for columns, and the columns of a tile: the next
/// tile is loaded beside it.
bool BlockMatMul::chooseSizes() {
  const uint64_t budget = context.tiler.budget;
  const int64_t groups = int64_t(llvm::divideCeil(uint64_t(sizes.columns), chip.lanes));
  auto used = [&](int64_t rows, int64_t columns) {
    return std::max(QuantizedRows::bytesToMake(sizes, rows, chip),
                    QuantizedRows::bytesToKeep(sizes, rows, chip) +
                        (columns < groups ? 2 : 1) * bytesOfTile(rows, columns));
  };
  for (rowsAtOnce = sizes.rows; rowsAtOnce > 1 && used(rowsAtOnce, 1) > budget;) {
    rowsAtOnce = (rowsAtOnce + 1) / 2;
  }
  for (groupsAtOnce = groups; groupsAtOnce > 1 && used(rowsAtOnce, groupsAtOnce) > budget;) {
    groupsAtOnce = (groupsAtOnce + 1) / 2;
  }
  return used(rowsAtOnce, groupsAtOnce) <= budget;
}

/// Multiplies all blocks of the tile's columns, and returns the sums as rows, lanes, 1, columns per lane.
TileView BlockMatMul::sumsOf(const QuantizedRows &rows, int64_t group, int64_t groups, LocalBudget &localBudget,
                             Tile &tile) {
  const auto perLane = uint32_t(groups), blocks = uint32_t(sizes.blocks()), steps = uint32_t(sizes.steps()),
             columns = perLane * chip.lanes;
  auto [integers, numbers] = weights.load(uint32_t(group) * chip.lanes, columns, localBudget, tile, chip);
  TileView terms = localBudget.allocate({{rows.count, chip.lanes, steps, perLane}}, Type::f32), ofBlocks = terms;
  ofBlocks.shape.dims[2] = blocks, ofBlocks.tensor.strides[2] *= int32_t(sizes.stepsPerBlock());
  const Tensor &to = ofBlocks.tensor;
  hw::matmul_command products;
  products.y = to, products.a = integers.tensor, products.b = rows.integers.tensor;
  products.y.strides[0] = to.strides[2], products.y.strides[1] = to.strides[3], products.y.strides[3] = to.strides[0];
  products.a.strides[0] = int32_t(sizes.block);
  products.shape = {{blocks, columns, 1, rows.count}}, products.channels = uint32_t(sizes.block);
  tile.computes.push_back(hw::encode(products));

  TileView factors = ofBlocks; // every row reads the factors of all blocks
  factors.tensor = numbers.tensor;
  factors.tensor.strides[0] = factors.tensor.strides[1] = 0, factors.tensor.strides[2] = sizeof(float),
  factors.tensor.strides[3] = numbers.tensor.strides[1];
  compute(stream, {{hw::Op::mul, 4, 0, 1, 0}}, ofBlocks, {ofBlocks, factors}, tile);
  if (sizes.hasMins) {
    ofBlocks.tensor.offset += uint64_t(terms.tensor.strides[2]), factors.tensor.offset += blocks * sizeof(float);
    compute(stream, {{hw::Op::maximum, 4, 0, 0, 0}}, ofBlocks, {factors}, tile);
  }
  TileView sums = localBudget.allocate({{rows.count, chip.lanes, 1, perLane}}, Type::f32);
  hw::dot_command total;
  total.y = sums.tensor, total.a = rows.factors.tensor, total.b = terms.tensor;
  total.shape = sums.shape, total.steps = steps;
  tile.computes.push_back(hw::encode(total));
  return sums;
}

/// Appends the tile that computes |groups| columns per lane of some rows.
void BlockMatMul::addColumns(const QuantizedRows &rows, int64_t group, int64_t groups) {
  const uint32_t first = uint32_t(group) * chip.lanes, columns = uint32_t(groups) * chip.lanes;
  LocalBudget localBudget(stream);
  Tile &tile = tiles.emplace_back();
  TileView sums = sumsOf(rows, group, groups, localBudget, tile);
  const Shape begin = {{rows.begin, first, 0, 0}},
              size = {{rows.count, std::min(columns, uint32_t(sizes.columns) - first), 1, 1}};
  sums.shape = size;
  sums.tensor.strides[1] = sums.tensor.strides[3], sums.tensor.strides[2] = sums.tensor.strides[3] = 0;
  TileView to = tileOf(y, begin, size, chip);
  if (program.empty()) {
    storeToo(sums, to, tile);
    return;
  }
  SmallVector<TileView> operands = {sums};
  for (const TileView &extra : extras) {
    operands.push_back(load(tileOf(extra, begin, size, chip), localBudget, tile));
  }
  const bool isInPlace = to.isLocal() && to.tensor.lane == 0;
  TileView result = isInPlace ? to : localBudget.allocate(size, y.tensor.type);
  compute(stream, program, result, operands, tile);
  isInPlace ? store(result, to, tile) : storeToo(result, to, tile);
}

std::vector<Tile> BlockMatMul::make() {
  const int64_t groups = int64_t(llvm::divideCeil(uint64_t(sizes.columns), chip.lanes));
  for (int64_t row = 0; row < sizes.rows; row += rowsAtOnce) {
    QuantizedRows rows(sizes, uint32_t(row), uint32_t(std::min(rowsAtOnce, sizes.rows - row)), stream);
    rows.make(x, context.tiler.budget, tiles);
    for (int64_t group = 0; group < groups; group += groupsAtOnce) {
      addColumns(rows, group, std::min(groupsAtOnce, groups - group));
    }
  }
  return std::move(tiles);
}

llvm::Error BlockMatMul::emit() {
  if (llvm::Error error = placeAll()) {
    return error;
  }
  if (!chooseSizes()) {
    return reject(llvm::formatv("needs more than the {0} bytes of a lane for a column and a block of a row",
                                context.tiler.budget));
  }
  const uint64_t kept = QuantizedRows::bytesToKeep(sizes, 1, chip),
                 least = std::max(QuantizedRows::bytesToMake(sizes, 1, chip), kept + bytesOfTile(1, 1)),
                 all = QuantizedRows::bytesToKeep(sizes, rowsAtOnce, chip) + bytesOfTile(rowsAtOnce, groupsAtOnce);
  context.tiler.appendTiles(context.surveys() ? std::vector<Tile>() : make(), least, all);
  return llvm::Error::success();
}

struct BlockMatMulModel : EmissionInterface::ExternalModel<BlockMatMulModel, device::BlockMatMulOp> {
  llvm::Error emit(Operation *op, EmissionContext &context) const {
    return BlockMatMul(cast<device::BlockMatMulOp>(op), context).emit();
  }
};

} // namespace

void attachBlockMatMulModels(MLIRContext *context) {
  device::BlockMatMulOp::attachInterface<BlockMatMulModel>(*context);
}

} // namespace tessera::npu
