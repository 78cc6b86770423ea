//===- RowsOnLanesMatmul.cpp - Matmuls with rows spread over lanes --------===//
// SPDX-License-Identifier: Apache-2.0
//
// Relative to a convolution the operands swap roles. Rows of a take the place of the weights, and the weights take the
// place of the input: they have one row per column of a, spread over the lanes and broadcast to all of them. Rows of a
// and of the result lie as in norms and attention, so nothing has to be transposed in off-chip memory.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Emission/Contraction/RowsOnLanesMatmul.h"

#include "codegen/Npu/Contraction/Contraction.h"
#include "codegen/Npu/Emission/RowFusionInterface.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/Transforms/Addresses.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Output;
using bmodel::npu::Type;
namespace {

/// Granule of columns of a tile, which makes rows whole bursts.
constexpr uint32_t kColumns = 64;
/// Inverse of the largest share of a lane that rows may take while they wait for the next matmul to read them.
constexpr uint64_t kMostWaiting = 8;

/// Sizes of a matmul. The rows of each batch begin in lane 0.
struct Sizes {
  int64_t batches, rows, inner, outputs;

  int64_t allRows() const { return batches * rows; }
  int64_t groups(const Chip &chip) const { return batches * int64_t(llvm::divideCeil(rows, chip.lanes)); }
};

Sizes sizesOf(device::MatMulOp op, int64_t batches) {
  RankedTensorType y = npu::typeOf(op.getY());
  int64_t outputs = y.getShape().back();
  return {batches, y.getNumElements() / outputs / batches, npu::typeOf(op.getA()).getShape().back(), outputs};
}

/// Returns the sizes with the number of batches that npu.row_lanes states.
Sizes sizesOf(device::MatMulOp op) {
  int64_t batches = op->getAttrOfType<IntegerAttr>(NpuDialect::kRowsOnLanesAttr).getInt();
  return sizesOf(op, batches);
}

llvm::Expected<TileView> placeRowsOf(const StridedView &seen, const Sizes &sizes, int64_t width,
                                     EmissionContext &context) {
  int64_t byRow = *seen.strideOf(width, sizes.allRows());
  return context.operands.place(seen.value, {sizes.batches, sizes.rows, 1, width},
                                {sizes.rows * byRow, byRow, 0, *seen.strideOf(1, width)}, seen.offset);
}

/// Places an operand of the epilogue. All leading dims are rows.
llvm::Expected<TileView> placeExtra(Value value, const Sizes &sizes, EmissionContext &context) {
  RankedTensorType type = npu::typeOf(value);
  int64_t count = type.getNumElements(), last = type.getRank() ? type.getShape().back() : 1;
  StridedView seen = context.fusedOps.viewOf(value);
  SmallVector<int64_t> view = {sizes.batches, sizes.rows, 1, sizes.outputs};
  if (count == sizes.allRows() * sizes.outputs) {
    return placeRowsOf(seen, sizes, sizes.outputs, context);
  }
  if (count == 1 || (last == sizes.outputs && count == sizes.outputs)) {
    int64_t step = count == 1 ? 0 : *seen.strideOf(1, sizes.outputs);
    return context.operands.placeOutside(seen.value, view, {0, 0, 0, step}, seen.offset);
  }
  if (last == 1 && count == sizes.allRows()) {
    int64_t byRow = *seen.strideOf(1, sizes.allRows());
    return context.operands.place(seen.value, view, {sizes.rows * byRow, byRow, 0, 0}, seen.offset);
  }
  return reject("has an epilogue that broadcasts over some of the leading dims, which is not supported yet");
}

/// Builds tiles of columns with all rows or, if the rows do not fit, tiles of rows with all columns.
class RowsOnLanesMatmul {
public:
  RowsOnLanesMatmul(device::MatMulOp op, Contraction &contraction, EmissionContext &context)
      : op(op), contraction(contraction), context(context), stream(context.stream), chip(context.chip),
        sizes(sizesOf(op)) {}

  llvm::Error placeWeights(const ContractionConstants &constants);
  void placeParameters();
  llvm::Error append();

private:
  enum class Fixed : uint8_t { rows, columns };

  void build(Fixed fixed, const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile);
  TileView loadRows(const TileView &rows, const Shape &begin, LocalBudget &localBudget, Tile &tile);
  TileView loadShared(const TileView &from, bool isShared, const Shape &begin, std::optional<TileView> &kept,
                      uint64_t &bytes, LocalBudget &localBudget, Tile &tile);
  TileView operandOf(const TileView &extra, const Shape &begin, const Shape &size, LocalBudget &localBudget,
                     Tile &tile);
  llvm::Error append(Fixed fixed);

  device::MatMulOp op;
  Contraction &contraction;
  EmissionContext &context;
  CommandStream &stream;
  const Chip &chip;
  const Sizes sizes;
  TileView weights;                   ///< as 1, inner, 1, outputs
  std::optional<TileView> parameters; ///< as 1, outputs, 1, 2 or 3
  std::optional<TileView> keptRows, keptWeights, keptParameters;
  uint64_t rowBytes = 0, weightBytes = 0, parameterBytes = 0;
};

/// Places the weights, as one row per column of a. All schedules that are tried share them.
llvm::Error RowsOnLanesMatmul::placeWeights(const ContractionConstants &constants) {
  auto &records = stream.constants.weights;
  auto [known, isNew] = records.try_emplace({op.getOperation(), true, 0});
  if (isNew) {
    llvm::Expected<std::vector<char>> bytes = constants.weights(contraction.weights.type);
    if (!bytes) {
      records.erase(known);
      return bytes.takeError();
    }
    known->second = stream.addConstant(
        op.getTransB() ? orderWeights(std::move(*bytes), 1, size_t(sizes.outputs), size_t(sizes.inner), 1) : *bytes);
  }
  weights.shape = {{1, uint32_t(sizes.inner), 1, uint32_t(sizes.outputs)}};
  weights.tensor = {.offset = known->second,
                    .strides = {0, int32_t(sizes.outputs), 0, 1},
                    .region = Region::constants,
                    .type = contraction.weights.type};
  return llvm::Error::success();
}

/// Places bias, factor and gain (mantissa and shift in integral stages) of each column.
void RowsOnLanesMatmul::placeParameters() {
  uint32_t count = contraction.epilogue.parameters(), outputs = uint32_t(sizes.outputs);
  if (!count) {
    return;
  }
  std::vector<int32_t> table;
  for (uint32_t o = 0; o < outputs; ++o) {
    std::array<int32_t, 3> numbers = contraction.epilogue.parametersOf(o);
    table.insert(table.end(), numbers.begin(), numbers.begin() + count);
  }
  ArrayRef<char> bytes(reinterpret_cast<const char *>(table.data()), table.size() * sizeof(int32_t));
  parameters.emplace();
  parameters->shape = {{1, outputs, 1, count}};
  parameters->tensor = {.offset = stream.addConstant(bytes),
                        .strides = {0, int32_t(count * sizeof(int32_t)), 0, sizeof(int32_t)},
                        .region = Region::constants,
                        .type = Type::i32};
}

/// Loads data once if all tiles share it; the first tile does so. Sets |bytes| to its size.
TileView RowsOnLanesMatmul::loadShared(const TileView &from, bool isShared, const Shape &begin,
                                       std::optional<TileView> &kept, uint64_t &bytes, LocalBudget &localBudget,
                                       Tile &tile) {
  if (!isShared) {
    return load(from, localBudget, tile);
  }
  bool isFirst = llvm::all_of(begin.dims, [](uint32_t at) { return at == 0; });
  if (isFirst) {
    LocalBudget own(stream);
    own.lane = localBudget.lane;
    kept = load(from, own, tile), bytes = own.used;
  }
  localBudget.fixed += bytes;
  return *kept;
}

/// Returns all rows in local memory. The first tile loads them, unless the previous matmul has loaded the same rows.
TileView RowsOnLanesMatmul::loadRows(const TileView &rows, const Shape &begin, LocalBudget &localBudget, Tile &tile) {
  const std::optional<LoadedRows> &known = stream.loadedRows;
  if (known && known->isOf(device::withoutReshapes(op.getA()), rows) && known->local.tensor.lane == localBudget.lane) {
    keptRows = known->local, rowBytes = known->bytes;
    localBudget.fixed += rowBytes;
    return *keptRows;
  }
  return loadShared(rows, true, begin, keptRows, rowBytes, localBudget, tile);
}

/// Loads an operand of a map on raw sums: a number per element, a number per row, or a row shared by all rows, once per
/// lane.
TileView RowsOnLanesMatmul::operandOf(const TileView &extra, const Shape &begin, const Shape &size,
                                      LocalBudget &localBudget, Tile &tile) {
  TileView part = tileOf(extra, begin, size, chip);
  if (extra.tensor.strides[1] || extra.dim(1) == 1) {
    return load(part, localBudget, tile);
  }
  std::optional<TileView> kept;
  Shape first{{0, 0, 0, 0}}; // tiles do not share it
  return loadPerLane(part, first, size.dims[1], chip, localBudget, tile, kept);
}

void RowsOnLanesMatmul::build(Fixed fixed, const Shape &begin, const Shape &size, LocalBudget &localBudget,
                              Tile &tile) {
  hw::matmul_command c;
  localBudget.lane = laneOfTile(contraction, true, begin, size, chip);
  TileView rows = slice(contraction.x, 0, begin.dims[0], size.dims[0], chip);
  rows = slice(rows, 1, begin.dims[1], size.dims[1], chip);
  c.a = fixed == Fixed::rows ? loadRows(rows, begin, localBudget, tile).tensor : load(rows, localBudget, tile).tensor;
  // Weights are broadcast to all lanes, so they may begin in any lane.
  uint16_t lane = std::exchange(localBudget.lane, 0);
  bool sharesWeights = fixed == Fixed::columns;
  TileView part = slice(weights, 3, begin.dims[3], size.dims[3], chip);
  c.b = loadShared(part, sharesWeights, begin, keptWeights, weightBytes, localBudget, tile).tensor;
  c.b.strides[0] = 0; // the same for all batches
  if (parameters) {
    TileView own = slice(*parameters, 1, begin.dims[3], size.dims[3], chip);
    c.p = loadShared(own, sharesWeights, begin, keptParameters, parameterBytes, localBudget, tile).tensor;
  }
  localBudget.lane = lane;
  TileView to = tileOf(contraction.y, begin, size, chip), y = resultOf(to, localBudget), sums = y;
  SmallVector<TileView> operands;
  if (contraction.epilogue.stage) {
    c.output = *contraction.epilogue.stage;
    if (contraction.epilogue.residual) {
      c.r = load(tileOf(*contraction.epilogue.residual, begin, size, chip), localBudget, tile).tensor;
    }
  } else {
    c.output.flags = Output::raw;
    sums = localBudget.allocate(to.shape, Type::i32);
    operands.push_back(sums);
    for (const TileView &extra : contraction.epilogue.extras) {
      operands.push_back(operandOf(extra, begin, size, localBudget, tile));
    }
  }
  c.y = sums.tensor, c.shape = to.shape, c.channels = uint32_t(sizes.inner);
  tile.computes.push_back(hw::encode(c));
  if (!contraction.epilogue.stage) {
    compute(stream, contraction.epilogue.program, y, operands, tile);
  }
  store(y, to, tile);
}

llvm::Error RowsOnLanesMatmul::append(Fixed fixed) {
  Shape granule = fixed == Fixed::rows ? Shape{{0, 0, 0, kColumns}} : Shape{{1, chip.lanes, 0, 0}};
  llvm::Error error = context.tiler.append(contraction.y.shape, granule,
                                           [&](const Shape &begin, const Shape &size, LocalBudget &localBudget,
                                               Tile &tile) { build(fixed, begin, size, localBudget, tile); });
  // Small sets of rows may wait in local memory for the next matmul, beside the ops in between.
  bool mayWait = !error && fixed == Fixed::rows && !context.surveys() && !context.tiler.sliceIteration &&
                 context.tiler.overlaps && !contraction.x.isLocal() && rowBytes <= chip.laneBytes / kMostWaiting;
  if (mayWait) {
    stream.loadedRows = LoadedRows{device::withoutReshapes(op.getA()), contraction.x, *keptRows, rowBytes};
  }
  return error;
}

/// Returns the bytes per lane of all rows, and of all weights.
std::pair<uint64_t, uint64_t> bytesOf(device::MatMulOp op, const Sizes &sizes, const Chip &chip) {
  auto bitsOf = [](Value value) { return uint64_t(npu::typeOf(value).getElementTypeBitWidth()); };
  auto groups = uint64_t(sizes.groups(chip));
  uint64_t columns = std::min<uint64_t>(kColumns, uint64_t(sizes.outputs));
  uint64_t rows = groups * (uint64_t(sizes.inner) * bitsOf(op.getA()) / 8 + columns * 3 * sizeof(int32_t));
  return {rows, llvm::divideCeil(uint64_t(sizes.inner), chip.lanes) * uint64_t(sizes.outputs)};
}

llvm::Error RowsOnLanesMatmul::append() {
  Fixed first = bytesOf(op, sizes, chip).first <= chip.laneBytes / 2 ? Fixed::rows : Fixed::columns;
  if (context.surveys()) {
    return append(first);
  }
  llvm::Error error = append(first);
  if (!error) {
    return error;
  }
  llvm::consumeError(std::move(error));
  return append(first == Fixed::rows ? Fixed::columns : Fixed::rows);
}

/// Checks that a matmul by constant weights can have its rows over the lanes.
llvm::Error check(device::MatMulOp op, const Sizes &sizes, EmissionContext &context) {
  bool hasWeights = npu::typeOf(op.getB()).getRank() == 2 && device::getConstantRoot(op.getB());
  if (op.getTransA() || !hasWeights || op.getScales() || !npu::typeOf(op.getA()).getElementType().isInteger() ||
      !npu::typeOf(op.getB()).getElementType().isInteger(8)) {
    return reject("has npu.row_lanes, which requires a matmul of integers by constant 8-bit weights");
  }
  if (sizes.allRows() * sizes.outputs != npu::typeOf(op.getY()).getNumElements()) {
    return reject("has npu.row_lanes with a number of batches that does not divide its rows");
  }
  auto [rows, weights] = bytesOf(op, sizes, context.chip);
  if (std::min(rows, weights) > context.chip.laneBytes / 2 || sizes.outputs > UINT16_MAX) {
    return reject(
        "has npu.row_lanes, but neither its rows nor its weights fit the lanes, or it has more than 65535 columns");
  }
  StridedView from = context.fusedOps.viewOf(op.getA());
  const FusedOps::FusedConsumers *consumers = context.fusedOps.consumersOf(op);
  StridedView to = consumers ? consumers->targets.front() : context.fusedOps.viewOf(op.getY());
  bool lieEvenly = from.strideOf(1, sizes.inner) && from.strideOf(sizes.inner, sizes.allRows()) &&
                   to.strideOf(1, sizes.outputs) && to.strideOf(sizes.outputs, sizes.allRows());
  return lieEvenly ? llvm::Error::success() : reject("has npu.row_lanes, but its rows are not evenly spaced");
}

/// Returns the number of batches of an integer attention that reads the result, else 1. The rows of each batch then
/// begin in lane 0. Attention reads queries and values like this; keys use the same distribution, so that the three
/// matmuls find their common operand in the same lanes.
int64_t batchesBehind(device::MatMulOp op) {
  SmallVector<OpOperand *> readers;
  fusion::findReaders(op.getY(), readers);
  for (size_t i = 0; i < readers.size(); ++i) {
    Operation *user = readers[i]->getOwner();
    if (auto attention = dyn_cast<device::AttentionOp>(user); attention && attention.isOfIntegers()) {
      ArrayRef<int64_t> dims = npu::typeOf(readers[i]->get()).getShape();
      int64_t all = npu::typeOf(op.getY()).getNumElements() / npu::typeOf(op.getY()).getShape().back();
      return dims.size() < 2 || all % dims[dims.size() - 2] ? 1 : all / dims[dims.size() - 2];
    }
    if (isa<device::CopyOp>(user) && fusion::getFused(user)) {
      fusion::findReaders(user->getResult(0), readers);
    }
  }
  return 1;
}

/// Returns true if rows over lanes are faster: weighs the saved off-chip traffic against lanes that the last rows leave
/// idle.
bool pays(device::MatMulOp op, const Sizes &sizes, EmissionContext &context) {
  if (llvm::Error error = check(op, sizes, context)) {
    llvm::consumeError(std::move(error));
    return false;
  }
  const Chip &chip = context.chip;
  auto bytesIn = [](Value value) {
    RankedTensorType type = npu::typeOf(value);
    return double(type.getNumElements()) * type.getElementTypeBitWidth() / 8;
  };
  StridedView from = context.fusedOps.viewOf(op.getA());
  if (*from.strideOf(1, sizes.inner) > 1) { // if columns are contiguous, the producer has columns over the lanes
    return false;
  }
  double moved = bytesIn(op.getA()) + bytesIn(op.getY());
  for (Value extra : op.getExtras()) {
    moved += npu::typeOf(extra).getNumElements() == sizes.allRows() * sizes.outputs ? bytesIn(extra) : 0;
  }
  double taps = double(llvm::divideCeil(sizes.inner, std::min(chip.reduction, chip.lanes)));
  auto cycles = [&](int64_t groups, int64_t positions) {
    return taps * double(groups) * double(llvm::divideCeil(positions, chip.pixels));
  };
  int64_t columnGroups = int64_t(llvm::divideCeil(sizes.outputs, chip.lanes));
  double more = cycles(sizes.groups(chip), sizes.outputs) - cycles(columnGroups, sizes.allRows());
  return more < moved / chip.ddrBytesPerCycle();
}

} // namespace

std::optional<int64_t> chooseRowsOnLanes(device::MatMulOp op, EmissionContext &context) {
  for (int64_t batches : {batchesBehind(op), int64_t(1)}) {
    if (pays(op, sizesOf(op, batches), context)) {
      return batches;
    }
  }
  return std::nullopt;
}

llvm::Error emitRowsOnLanesMatmul(device::MatMulOp op, EmissionContext &context) {
  Sizes sizes = sizesOf(op);
  if (llvm::Error error = check(op, sizes, context)) {
    return error;
  }
  const FusedOps::FusedConsumers *consumers = context.fusedOps.consumersOf(op);
  llvm::Expected<TileView> x = placeRowsOf(context.fusedOps.viewOf(op.getA()), sizes, sizes.inner, context);
  llvm::Expected<TileView> y = placeRowsOf(consumers ? consumers->targets.front() : context.fusedOps.viewOf(op.getY()),
                                           sizes, sizes.outputs, context);
  if (!x || !y) {
    return llvm::joinErrors(x.takeError(), y.takeError());
  }
  Contraction contraction;
  contraction.x = *x, contraction.y = *y, contraction.outputsDim = 3;
  auto place = [&](Value value) { return placeExtra(value, sizes, context); };
  if (llvm::Error error = setEpilogue(contraction, op.getEpilogue(), op.getExtras(),
                                      npu::typeOf(op.getY()).getElementType(), context.stream, place)) {
    return error;
  }
  ArrayRef<int64_t> bDims = npu::typeOf(op.getB()).getShape();
  const ContractionConstants constants{op.getB(), op.getBias(), op.getScales(),
                                       device::WeightScales::ofMatMul(bDims, op.getWeightGroup(), op.getTransB())};
  if (llvm::Error error = constants.setParameters(contraction)) {
    return error;
  }
  RowsOnLanesMatmul tiles(op, contraction, context);
  if (llvm::Error error = tiles.placeWeights(constants)) {
    return error;
  }
  tiles.placeParameters();
  return tiles.append();
}

} // namespace tessera::npu
