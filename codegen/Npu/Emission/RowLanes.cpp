//===- RowLanes.cpp - Products of rows that lie over lanes ----------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Rows take the place of a convolution's weights, and the weights that of its input: their rows, one for each column
// of the first factor, are over lanes and sent to all of them. Rows of factor and result lie as norms and attention
// have them, so nothing has to be turned outside the chip.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Emission/RowLanes.h"

#include "codegen/Npu/Product.h"
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

constexpr int32_t kOne = 0x3f800000; // the bits of 1.0f
/// Tiles have multiples of so many columns: whole bursts.
constexpr uint32_t kColumns = 64;

struct Sizes {
  int64_t rows, inner, outputs;
};

Sizes sizesOf(device::MatMulOp op) {
  RankedTensorType y = npu::typeOf(op.getY());
  int64_t outputs = y.getShape().back();
  return {y.getNumElements() / outputs, npu::typeOf(op.getA()).getShape().back(), outputs};
}

/// An operand of the epilogue; all leading dims are rows.
llvm::Expected<TileView> placeExtra(Value value, const Sizes &sizes, EmissionContext &context) {
  RankedTensorType type = npu::typeOf(value);
  int64_t count = type.getNumElements(), last = type.getRank() ? type.getShape().back() : 1;
  StridedView seen = context.fusedOps.viewOf(value);
  SmallVector<int64_t> view = {1, sizes.rows, 1, sizes.outputs};
  if (count == sizes.rows * sizes.outputs) {
    return context.operands.placeRows(seen, sizes.rows, sizes.outputs);
  }
  if (count == 1 || (last == sizes.outputs && count == sizes.outputs)) {
    int64_t step = count == 1 ? 0 : *seen.strideOf(1, sizes.outputs);
    return context.operands.placeOutside(seen.value, view, {0, 0, 0, step}, seen.offset);
  }
  if (last == 1 && count == sizes.rows) {
    return context.operands.place(seen.value, view, {0, *seen.strideOf(1, sizes.rows), 0, 0}, seen.offset);
  }
  return refuse("has an epilogue that broadcasts over some of the leading dims, which is not emitted yet");
}

/// Tiles of columns with all rows or, where these have no room, of rows with all columns.
class RowLanes {
public:
  RowLanes(device::MatMulOp op, Product &product, EmissionContext &context)
      : op(op), product(product), context(context), stream(context.stream), chip(context.chip), sizes(sizesOf(op)) {}

  llvm::Error placeWeights(const ProductConstants &constants);
  void placeParameters();
  llvm::Error append();

private:
  enum class Fixed : uint8_t { rows, columns };

  void build(Fixed fixed, const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile);
  TileView loadShared(const TileView &from, bool isShared, const Shape &begin, std::optional<TileView> &kept,
                      uint64_t &bytes, LocalBudget &localBudget, Tile &tile);
  TileView operandOf(const TileView &extra, const Shape &begin, const Shape &size, LocalBudget &localBudget,
                     Tile &tile);
  llvm::Error append(Fixed fixed);
  uint16_t laneOfTile(const Shape &begin, const Shape &size) const;

  device::MatMulOp op;
  Product &product;
  EmissionContext &context;
  Stream &stream;
  const Chip &chip;
  const Sizes sizes;
  TileView weights;                   ///< as 1, inner, 1, outputs
  std::optional<TileView> parameters; ///< as 1, outputs, 1, 2 or 3
  std::optional<TileView> keptRows, keptWeights, keptParameters;
  uint64_t rowBytes = 0, weightBytes = 0, parameterBytes = 0;
};

/// Once for all plans that are tried: as one row for each column of the first factor.
llvm::Error RowLanes::placeWeights(const ProductConstants &constants) {
  auto &records = stream.constants.weights;
  auto [known, isNew] = records.try_emplace({op.getOperation(), true, 0});
  if (isNew) {
    llvm::Expected<std::vector<char>> bytes = constants.weights(product.weightType);
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
                    .type = product.weightType};
  return llvm::Error::success();
}

/// Bias, factor and gain (or mantissa and shift) of each column.
void RowLanes::placeParameters() {
  if (product.bias.empty() && product.factors.empty() && product.gains.empty()) {
    return;
  }
  bool hasThree = product.stage && product.stage->flags & (Output::integral | Output::gains);
  uint32_t count = hasThree ? 3 : 2, outputs = uint32_t(sizes.outputs);
  std::vector<int32_t> table;
  for (uint32_t o = 0; o < outputs; ++o) {
    table.push_back(product.bias.empty() ? 0 : product.bias[o]);
    table.push_back(product.factors.empty() ? kOne : product.factors[o]);
    if (hasThree) {
      table.push_back(product.gains.empty() ? kOne : product.gains[o]);
    }
  }
  ArrayRef<char> bytes(reinterpret_cast<const char *>(table.data()), table.size() * sizeof(int32_t));
  parameters.emplace();
  parameters->shape = {{1, outputs, 1, count}};
  parameters->tensor = {.offset = stream.addConstant(bytes),
                        .strides = {0, int32_t(count * sizeof(int32_t)), 0, sizeof(int32_t)},
                        .region = Region::constants,
                        .type = Type::i32};
}

/// What all tiles share is loaded by the first of them; |bytes| is what it takes.
TileView RowLanes::loadShared(const TileView &from, bool isShared, const Shape &begin, std::optional<TileView> &kept,
                              uint64_t &bytes, LocalBudget &localBudget, Tile &tile) {
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

/// What a map on raw sums reads: of each element, of each row, or once a lane.
TileView RowLanes::operandOf(const TileView &extra, const Shape &begin, const Shape &size, LocalBudget &localBudget,
                             Tile &tile) {
  TileView part = tileOf(extra, begin, size, chip);
  if (extra.tensor.strides[1] || extra.dim(1) == 1) {
    return load(part, localBudget, tile);
  }
  std::optional<TileView> kept;
  Shape first{{0, 0, 0, 0}}; // each tile has its own
  return loadPerLane(part, first, size.dims[1], chip, localBudget, tile, kept);
}

uint16_t RowLanes::laneOfTile(const Shape &begin, const Shape &size) const {
  llvm::SmallVector<TileView> whole = {product.y, product.x};
  if (product.residual) {
    whole.push_back(*product.residual);
  }
  whole.append(product.extras);
  for (TileView &each : whole) {
    each = slice(each, 1, begin.dims[1], size.dims[1], chip);
  }
  return laneOf(whole);
}

void RowLanes::build(Fixed fixed, const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile) {
  hw::matmul_command c;
  localBudget.lane = laneOfTile(begin, size);
  TileView rows = slice(product.x, 1, begin.dims[1], size.dims[1], chip);
  c.a = loadShared(rows, fixed == Fixed::rows, begin, keptRows, rowBytes, localBudget, tile).tensor;
  // Weights go to all lanes from wherever they are.
  uint16_t lane = std::exchange(localBudget.lane, 0);
  bool sharesWeights = fixed == Fixed::columns;
  TileView part = slice(weights, 3, begin.dims[3], size.dims[3], chip);
  c.b = loadShared(part, sharesWeights, begin, keptWeights, weightBytes, localBudget, tile).tensor;
  if (parameters) {
    TileView own = slice(*parameters, 1, begin.dims[3], size.dims[3], chip);
    c.p = loadShared(own, sharesWeights, begin, keptParameters, parameterBytes, localBudget, tile).tensor;
  }
  localBudget.lane = lane;
  TileView to = tileOf(product.y, begin, size, chip), y = resultOf(to, localBudget), sums = y;
  SmallVector<TileView> operands;
  if (product.stage) {
    c.output = *product.stage;
    if (product.residual) {
      c.r = load(tileOf(*product.residual, begin, size, chip), localBudget, tile).tensor;
    }
  } else {
    c.output.flags = Output::raw;
    sums = localBudget.allocate(to.shape, Type::i32);
    operands.push_back(sums);
    for (const TileView &extra : product.extras) {
      operands.push_back(operandOf(extra, begin, size, localBudget, tile));
    }
  }
  c.y = sums.tensor, c.shape = to.shape, c.channels = uint32_t(sizes.inner);
  tile.computes.push_back(hw::encode(c));
  if (!product.stage) {
    compute(stream, product.program, y, operands, tile);
  }
  store(y, to, tile);
}

llvm::Error RowLanes::append(Fixed fixed) {
  Shape granule = fixed == Fixed::rows ? Shape{{0, 0, 0, kColumns}} : Shape{{0, chip.lanes, 0, 0}};
  return context.tiler.append(product.y.shape, granule,
                              [&](const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile) {
                                build(fixed, begin, size, localBudget, tile);
                              });
}

/// Bytes of a lane for all rows, and for all weights.
std::pair<uint64_t, uint64_t> bytesOf(device::MatMulOp op, const Chip &chip) {
  Sizes sizes = sizesOf(op);
  auto bitsOf = [](Value value) { return uint64_t(npu::typeOf(value).getElementTypeBitWidth()); };
  uint64_t groups = llvm::divideCeil(uint64_t(sizes.rows), chip.lanes);
  uint64_t columns = std::min<uint64_t>(kColumns, uint64_t(sizes.outputs));
  uint64_t rows = groups * (uint64_t(sizes.inner) * bitsOf(op.getA()) / 8 + columns * 3 * sizeof(int32_t));
  return {rows, llvm::divideCeil(uint64_t(sizes.inner), chip.lanes) * uint64_t(sizes.outputs)};
}

llvm::Error RowLanes::append() {
  Fixed first = bytesOf(op, chip).first <= chip.laneBytes / 2 ? Fixed::rows : Fixed::columns;
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

} // namespace

llvm::Error checkRowLanes(device::MatMulOp op, EmissionContext &context) {
  bool hasWeights = npu::typeOf(op.getB()).getRank() == 2 && device::getConstantRoot(op.getB());
  if (op.getTransA() || !hasWeights || op.getScales() || !npu::typeOf(op.getA()).getElementType().isInteger() ||
      !npu::typeOf(op.getB()).getElementType().isInteger(8)) {
    return refuse("has its rows over lanes, which only products of integers by constant weights have");
  }
  auto [rows, weights] = bytesOf(op, context.chip);
  Sizes sizes = sizesOf(op);
  if (std::min(rows, weights) > context.chip.laneBytes / 2 || sizes.outputs > UINT16_MAX) {
    return refuse("has its rows over lanes, which do not hold all rows, or all weights");
  }
  StridedView from = context.fusedOps.viewOf(op.getA());
  const FusedOps::FusedConsumers *consumers = context.fusedOps.consumersOf(op);
  StridedView to = consumers ? consumers->targets.front() : context.fusedOps.viewOf(op.getY());
  bool lieEvenly = from.strideOf(1, sizes.inner) && from.strideOf(sizes.inner, sizes.rows) &&
                   to.strideOf(1, sizes.outputs) && to.strideOf(sizes.outputs, sizes.rows);
  return lieEvenly ? llvm::Error::success() : refuse("has its rows over lanes, but they do not lie evenly");
}

bool paysRowLanes(device::MatMulOp op, EmissionContext &context) {
  if (llvm::Error error = checkRowLanes(op, context)) {
    llvm::consumeError(std::move(error));
    return false;
  }
  const Chip &chip = context.chip;
  Sizes sizes = sizesOf(op);
  auto bytesIn = [](Value value) {
    RankedTensorType type = npu::typeOf(value);
    return double(type.getNumElements()) * type.getElementTypeBitWidth() / 8;
  };
  StridedView from = context.fusedOps.viewOf(op.getA());
  if (*from.strideOf(1, sizes.inner) > 1) { // columns lie together: whoever made them has these over lanes
    return false;
  }
  double moved = bytesIn(op.getA()) + bytesIn(op.getY());
  for (Value extra : op.getExtras()) {
    moved += npu::typeOf(extra).getNumElements() == sizes.rows * sizes.outputs ? bytesIn(extra) : 0;
  }
  double taps = double(llvm::divideCeil(sizes.inner, std::min(chip.reduction, chip.lanes)));
  auto cycles = [&](int64_t overLanes, int64_t positions) {
    return taps * double(llvm::divideCeil(overLanes, chip.lanes)) * double(llvm::divideCeil(positions, chip.pixels));
  };
  double more = cycles(sizes.rows, sizes.outputs) - cycles(sizes.outputs, sizes.rows);
  return more < moved / chip.ddrBytesPerCycle();
}

llvm::Error emitRowLanes(device::MatMulOp op, EmissionContext &context) {
  if (llvm::Error error = checkRowLanes(op, context)) {
    return error;
  }
  Sizes sizes = sizesOf(op);
  const FusedOps::FusedConsumers *consumers = context.fusedOps.consumersOf(op);
  llvm::Expected<TileView> x = context.operands.placeRows(context.fusedOps.viewOf(op.getA()), sizes.rows, sizes.inner);
  llvm::Expected<TileView> y = context.operands.placeRows(
      consumers ? consumers->targets.front() : context.fusedOps.viewOf(op.getY()), sizes.rows, sizes.outputs);
  if (!x || !y) {
    return llvm::joinErrors(x.takeError(), y.takeError());
  }
  Product product;
  product.x = *x, product.y = *y, product.outputsDim = 3;
  auto place = [&](Value value) { return placeExtra(value, sizes, context); };
  if (llvm::Error error = setEpilogue(product, op.getEpilogue(), op.getExtras(),
                                      npu::typeOf(op.getY()).getElementType(), context.stream, place)) {
    return error;
  }
  ArrayRef<int64_t> bDims = npu::typeOf(op.getB()).getShape();
  const ProductConstants constants{op.getB(), op.getBias(), op.getScales(),
                                   device::WeightScales::ofMatMul(bDims, op.getWeightGroup(), op.getTransB())};
  if (llvm::Error error = constants.setParameters(product)) {
    return error;
  }
  RowLanes tiles(op, product, context);
  if (llvm::Error error = tiles.placeWeights(constants)) {
    return error;
  }
  tiles.placeParameters();
  return tiles.append();
}

} // namespace tessera::npu
