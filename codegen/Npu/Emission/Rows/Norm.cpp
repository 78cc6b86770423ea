//===- Norm.cpp - Normalisation of rows on the NPU ------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/EmissionInterface.h"
#include "codegen/Npu/Emission/Models.h"
#include "codegen/Npu/Emission/RowFusionInterface.h"
#include "codegen/Npu/Emission/Rows/LongNorm.h"
#include "codegen/Npu/Emission/Rows/RowPieces.h"
#include "device_dialect/Transforms/Addresses.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::npu {
using bmodel::npu::Type;
namespace {

/// An operand of a map that is fused into a norm: the norm's result, which has no view, rows, or a row shared by all
/// rows.
struct RowsOperand {
  std::optional<TileView> place;
  bool hasRows;
};

/// Places the operands of the map behind a norm: one number per element, one row for all rows, or one number.
llvm::Expected<SmallVector<RowsOperand>> placeMapped(const FusedOps::FusedConsumers &consumers, int64_t rows,
                                                     int64_t size, OperandPlacer &operands) {
  SmallVector<RowsOperand> result;
  device::MapOp map = consumers.map;
  for (Value input : map ? ValueRange(map.getInputs()) : ValueRange()) {
    if (input == consumers.mapped) {
      result.push_back({std::nullopt, false});
      continue;
    }
    int64_t count = npu::typeOf(input).getNumElements();
    bool hasRows = count == rows * size && count > 1;
    auto placed = hasRows ? operands.place(input, {1, rows, 1, size}, {0, size, 0, 1})
                          : operands.placeOutside(input, {1, rows, 1, size}, {0, 0, 0, count == 1 ? 0 : 1});
    if (!placed) {
      return placed.takeError();
    }
    result.push_back({*placed, hasRows});
  }
  return result;
}

llvm::Expected<SmallVector<TileView>> placeTargets(ArrayRef<StridedView> targets, int64_t rows, int64_t size,
                                                   OperandPlacer &operands) {
  SmallVector<TileView> result;
  for (const StridedView &target : targets) {
    llvm::Expected<TileView> placed = operands.placeRows(target, rows, size);
    if (!placed) {
      return placed.takeError();
    }
    result.push_back(*placed);
  }
  return result;
}

/// Places the scale and the bias, if present.
llvm::Expected<SmallVector<TileView>> placeParameters(device::NormOp op, int64_t rows, int64_t size,
                                                      OperandPlacer &operands) {
  SmallVector<TileView> result;
  for (Value each : {op.getScale(), op.getBias()}) {
    if (each) {
      llvm::Expected<TileView> placed = operands.placeOutside(each, {1, rows, 1, size}, {0, 0, 0, 1});
      if (!placed) {
        return placed.takeError();
      }
      result.push_back(*placed);
    }
  }
  return result;
}

/// Builds the tiles of one norm. Rows are spread over the lanes, and each is normalised inside its lane.
class NormTiles {
public:
  NormTiles(device::NormOp op, int64_t size, EmissionContext &context)
      : programs(op, size), isRms(op.getRms()), stream(context.stream), chip(context.chip) {}

  /// Places all operands and results.
  llvm::Error placeAll(device::NormOp op, int64_t rows, int64_t size, EmissionContext &context);

  void build(const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile);
  /// Returns the norm with rows cut into segments, or nothing if a map is fused behind it or rows lie in blocks.
  std::optional<LongNorm> inPieces() const {
    return program || !blocks.empty()
               ? std::nullopt
               : std::optional<LongNorm>(LongNorm{programs, isRms, x, targets, parameters, stream, chip});
  }
  const Shape &whole() const { return targets.front().shape; }

private:
  llvm::Error placeRowsOfX(const StridedView &seen, int64_t rows, int64_t size, OperandPlacer &operands);
  TileView loadRows(const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile);
  void computeMapped(const TileView &normed, const TileView &result, const Shape &begin, const Shape &part,
                     LocalBudget &localBudget, Tile &tile);

  const NormPrograms programs;
  const bool isRms;
  CommandStream &stream;
  const Chip &chip;
  TileView x;
  SmallVector<TileView> blocks;  ///< blocks of x if its rows are not evenly spaced, with rows as c; in off-chip memory
  SmallVector<TileView> targets; ///< destinations of the result
  SmallVector<TileView> parameters; ///< scale and bias
  SmallVector<RowsOperand> mapped;
  std::optional<Instructions> program; ///< map behind the norm
  std::array<std::optional<TileView>, 2> liveAcross;
  std::array<std::optional<TileView>, bmodel::npu::kMapOperands> keptOfMap;
};

llvm::Error NormTiles::placeRowsOfX(const StridedView &seen, int64_t rows, int64_t size, OperandPlacer &operands) {
  if (fusion::hasEvenRows(seen, rows, size)) {
    llvm::Expected<TileView> placed = operands.placeRows(seen, rows, size);
    x = placed ? *placed : TileView();
    return placed.takeError();
  }
  std::optional<BlockedRows> blocked = fusion::blockedRowsOf(seen, rows, size);
  if (!blocked) {
    return reject("reads rows that are neither evenly spaced nor in evenly spaced blocks");
  }
  for (int64_t block = 0; block < blocked->blocks; ++block) {
    llvm::Expected<TileView> placed =
        operands.placeOutside(seen.value, {blocked->sizes[0], blocked->rows, blocked->sizes[1], blocked->sizes[2]},
                              {blocked->strides[0], blocked->byRow, blocked->strides[1], blocked->strides[2]},
                              seen.offset + block * blocked->byBlock);
    if (!placed) {
      return placed.takeError();
    }
    blocks.push_back(*placed);
  }
  return llvm::Error::success();
}

/// Loads the rows of a tile into local memory, with a command per block if there are blocks.
TileView NormTiles::loadRows(const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile) {
  if (blocks.empty()) {
    return load(tileOf(x, begin, part, chip), localBudget, tile);
  }
  TileView result = localBudget.allocate(part, blocks[0].tensor.type);
  uint32_t each = blocks[0].dim(1), end = begin.dims[1] + part.dims[1];
  for (uint32_t row = begin.dims[1], count = 0; row < end; row += count) {
    count = std::min(end - row, each - row % each);
    TileView from = slice(blocks[row / each], 1, row % each, count, chip);
    TileView to = slice(result, 1, row - begin.dims[1], count, chip);
    to.tensor.strides[2] = to.tensor.strides[3] * int32_t(from.dim(3));
    to.tensor.strides[0] = to.tensor.strides[2] * int32_t(from.dim(2));
    bmodel::npu::copy_command copy;
    copy.x = from.tensor, copy.y = to.tensor, copy.shape = from.shape;
    tile.loads.push_back(bmodel::npu::encode(copy));
  }
  return result;
}

llvm::Error NormTiles::placeAll(device::NormOp op, int64_t rows, int64_t size, EmissionContext &context) {
  FusedOps::FusedConsumers consumers;
  if (const FusedOps::FusedConsumers *known = context.fusedOps.consumersOf(op)) {
    consumers = *known;
  } else {
    consumers.targets.push_back(context.fusedOps.viewOf(op.getY()));
  }
  if (llvm::Error error = placeRowsOfX(context.fusedOps.viewOf(op.getX()), rows, size, context.operands)) {
    return error;
  }
  llvm::Expected<SmallVector<TileView>> to = placeTargets(consumers.targets, rows, size, context.operands);
  llvm::Expected<SmallVector<RowsOperand>> others = placeMapped(consumers, rows, size, context.operands);
  if (!to || !others) {
    return llvm::joinErrors(to.takeError(), others.takeError());
  }
  llvm::Expected<SmallVector<TileView>> numbers = placeParameters(op, rows, size, context.operands);
  if (!numbers) {
    return numbers.takeError();
  }
  targets = std::move(*to), mapped = std::move(*others), parameters = std::move(*numbers);
  if (consumers.map) {
    program = consumers.program;
  }
  return llvm::Error::success();
}

void NormTiles::build(const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile) {
  const TileView to = tileOf(targets.front(), begin, part, chip), &source = blocks.empty() ? x : blocks[0];
  localBudget.lane = blocks.empty() ? laneOf({to, tileOf(x, begin, part, chip)}) : laneOf({to});
  bool isOwn = !source.isLocal() && source.tensor.type == Type::f32; // buffer that x is loaded to
  TileView from = loadRows(begin, part, localBudget, tile);
  Shape row = {{1, part.dims[1], 1, 1}};
  TileView total = localBudget.allocate(row, Type::f32), result = resultOf(to, localBudget), centred = from;
  bool inResult = result.tensor.type == Type::f32;
  if (!isRms) {
    reduce(total, from, Reduction::sum, tile);
    compute(stream, programs.mean, total, {total}, tile);
    centred = inResult ? result : isOwn ? from : localBudget.allocate(part, Type::f32);
    compute(stream, programs.centre, centred, {from, repeated(total)}, tile);
  }
  reduce(total, centred, Reduction::squares, tile);
  compute(stream, programs.factor, total, {total}, tile);
  SmallVector<TileView> operands = {centred, repeated(total)};
  for (auto [index, parameter] : llvm::enumerate(parameters)) {
    operands.push_back(loadPerLane(parameter, begin, part.dims[1], chip, localBudget, tile, liveAcross[index]));
  }
  bool ownsRows = isOwn || !isRms;
  TileView normed = inResult || !program ? result : ownsRows ? centred : localBudget.allocate(part, Type::f32);
  compute(stream, programs.finish, normed, operands, tile);
  if (program) {
    computeMapped(normed, result, begin, part, localBudget, tile);
  }
  store(result, to, tile);
  for (const TileView &other : llvm::drop_begin(targets)) {
    storeToo(result, tileOf(other, begin, part, chip), tile);
  }
}

void NormTiles::computeMapped(const TileView &normed, const TileView &result, const Shape &begin, const Shape &part,
                              LocalBudget &localBudget, Tile &tile) {
  SmallVector<TileView> operands;
  for (auto [index, each] : llvm::enumerate(mapped)) {
    operands.push_back(!each.place ? normed
                       : each.hasRows
                           ? load(tileOf(*each.place, begin, part, chip), localBudget, tile)
                           : loadPerLane(*each.place, begin, part.dims[1], chip, localBudget, tile, keptOfMap[index]));
  }
  compute(stream, *program, result, operands, tile);
}

struct NormModel : EmissionInterface::ExternalModel<NormModel, device::NormOp> {
  llvm::Error emit(Operation *op, EmissionContext &context) const {
    auto norm = cast<device::NormOp>(op);
    if (!norm.getEpilogue().empty()) {
      return reject("is a norm with an epilogue, which is not supported yet");
    }
    ArrayRef<int64_t> dims = npu::typeOf(norm.getX()).getShape();
    int64_t size = ShapedType::getNumElements(dims.drop_front(norm.getAxis()));
    int64_t rows = ShapedType::getNumElements(dims) / size;
    NormTiles tiles(norm, size, context);
    if (llvm::Error error = tiles.placeAll(norm, rows, size, context)) {
      return error;
    }
    auto build = [&](const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile) {
      tiles.build(begin, part, localBudget, tile);
    };
    std::optional<LongNorm> inPieces = tiles.inPieces();
    if (inPieces && !rowsFit(tiles.whole(), build, context)) {
      RowPieces::append(context.tiler, [&] { return inPieces->make(); });
      return llvm::Error::success();
    }
    return context.tiler.append(tiles.whole(), Shape{{0, context.chip.lanes, 0, 0}}, build);
  }
};

/// Returns the number of elements of a row.
int64_t rowOf(device::NormOp norm) {
  return ShapedType::getNumElements(npu::typeOf(norm.getX()).getShape().drop_front(norm.getAxis()));
}

int64_t countOf(Value value) { return npu::typeOf(value).getNumElements(); }

/// Returns true if a further operand of the map is available before the norm runs, and is a number, a row, or rows.
bool canReadBeside(device::NormOp norm, Value input) {
  Operation *maker = input.getDefiningOp();
  bool isThere = !maker || device::getConstantRoot(input) || maker->isBeforeInBlock(norm);
  int64_t count = countOf(input), last = npu::typeOf(input).getRank() ? npu::typeOf(input).getShape().back() : 1;
  bool isRow = count == last && last == rowOf(norm);
  return isThere && (count == 1 || isRow || count == countOf(norm.getY()));
}

/// Returns true if x is f32 and its rows lie in blocks.
bool hasBlocks(device::NormOp norm, const StridedView &view) {
  int64_t size = rowOf(norm);
  return npu::typeOf(norm.getX()).getElementType().isF32() &&
         fusion::blockedRowsOf(view, countOf(norm.getX()) / size, size).has_value();
}

struct NormFusion : RowFusionInterface::ExternalModel<NormFusion, device::NormOp> {
  bool canRead(Operation *op, OpOperand &use, const StridedView &view) const {
    auto norm = cast<device::NormOp>(op);
    int64_t size = rowOf(norm), rows = countOf(norm.getX()) / size;
    return &use == &norm.getXMutable() && (fusion::hasEvenRows(view, rows, size) || hasBlocks(norm, view));
  }
  /// Blocks cost a command each, whereas a copy would move all data once more.
  bool paysToRead(Operation *op, OpOperand &use, const StridedView &view, const Chip &chip) const {
    auto norm = cast<device::NormOp>(op);
    int64_t size = rowOf(norm), rows = countOf(norm.getX()) / size;
    if (fusion::hasEvenRows(view, rows, size)) {
      return true;
    }
    BlockedRows blocked = *fusion::blockedRowsOf(view, rows, size);
    double bytes = double(rows * size) * sizeof(float), held = 4.0 * double(size) * sizeof(float);
    bool hasRuns = blocked.strides[2] == 1 && blocked.sizes[2] * int64_t(sizeof(float)) >= chip.burstBytes;
    return hasRuns && held <= double(chip.laneBytes) &&
           double(blocked.blocks) * chip.dmaLatency < 2 * bytes / chip.ddrBytesPerCycle();
  }
  bool canStore(Operation *op, const StridedView &view) const {
    auto norm = cast<device::NormOp>(op);
    return fusion::hasEvenRows(view, countOf(norm.getY()) / rowOf(norm), rowOf(norm));
  }
  bool storesTwice(Operation *) const { return true; }
  bool canCompute(Operation *op, device::MapOp map, Value mapped, const Chip &chip) const {
    auto norm = cast<device::NormOp>(op);
    bool isBeside =
        llvm::all_of(map.getInputs(), [&](Value input) { return input == mapped || canReadBeside(norm, input); });
    // Rows of all operands and of the result are in a lane at once, as well as the sum of a row.
    size_t held = norm->getNumOperands() + map.getInputs().size();
    uint64_t rowBytes = llvm::alignTo(uint64_t(rowOf(norm)) * sizeof(float), chip.portBytes);
    return isBeside && npu::typeOf(norm.getY()).getElementType().isF32() &&
           held * rowBytes + chip.portBytes <= chip.laneBytes;
  }
};

} // namespace

void attachNormModels(MLIRContext *context) { device::NormOp::attachInterface<NormModel, NormFusion>(*context); }

} // namespace tessera::npu
