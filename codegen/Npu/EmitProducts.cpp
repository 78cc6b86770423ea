//===- EmitProducts.cpp - Convolutions and matrix products of the NPU -----===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emitter.h"
#include "codegen/Npu/Product.h"

#include "device_dialect/Transforms/Addresses.h"

#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Output;
using bmodel::npu::Type;
namespace {

/// Tiles over images, outputs and rows.
class ProductEmitter {
  static constexpr int32_t kOne = 0x3f800000; // the bits of 1.0f

public:
  ProductEmitter(Product &product, Tiler &tiler)
      : product(product), tiler(tiler), stream(tiler.stream), chip(stream.chip) {}

  llvm::Error run() {
    record = placeRecord();
    return tiler.append(
        product.y.shape, Shape{{1, outputsAtLeast(), 1, 0}},
        [&](const Shape &begin, const Shape &size, Area &area, Tile &tile) { build(begin, size, area, tile); });
  }

private:
  /// What outputs are cut into multiples of. A cut through a group loads its channels of x for both sides: only where
  /// the weights of a group take so much of local memory.
  uint32_t outputsAtLeast() const {
    uint32_t perGroup = product.y.dim(1) / product.groups;
    if (product.groups == 1 || product.isDepthwise()) {
      return chip.lanes;
    }
    uint64_t bytes = uint64_t(record.dim(3)) * (perGroup / chip.lanes);
    return perGroup % chip.lanes == 0 && bytes > chip.laneBytes / 4 ? chip.lanes : perGroup;
  }

  /// Bias, factor and gain (or mantissa and shift) of an output.
  uint32_t parameters() const {
    bool hasThree = product.stage && product.stage->flags & (Output::integral | Output::gains);
    bool none = product.bias.empty() && product.factors.empty() && product.gains.empty();
    return none ? 0 : hasThree ? 3 : 2;
  }

  /// What one load brings of an output: its weights, then its parameters.
  Place placeRecord() {
    uint32_t outputs = product.y.dim(1), size = uint32_t(hw::sizeOf(product.weightType));
    uint32_t weights = product.second ? 0 : product.weights.dims[2] * product.weights.dims[3] * size;
    parametersAt = uint32_t(llvm::alignTo(weights, sizeof(int32_t)));
    uint32_t bytes = parameters() ? parametersAt + parameters() * uint32_t(sizeof(int32_t)) : weights;
    if (!product.ordered.empty() || (product.second && parameters())) {
      std::vector<char> table(size_t(outputs) * bytes);
      for (uint32_t o = 0; o < outputs; ++o) {
        char *row = &table[size_t(o) * bytes];
        std::copy_n(product.ordered.begin() + size_t(o) * weights, weights, row);
        int32_t numbers[] = {product.bias.empty() ? 0 : product.bias[o],
                             product.factors.empty() ? kOne : product.factors[o],
                             product.gains.empty() ? kOne : product.gains[o]};
        std::memcpy(row + parametersAt, numbers, parameters() * sizeof(int32_t));
      }
      *product.record = stream.addConstant(table);
    }
    Place made;
    made.shape = {{1, outputs, 1, bytes}};
    made.tensor = {
        .offset = *product.record, .strides = {0, int32_t(bytes), 0, 1}, .region = Region::constants, .type = Type::i8};
    return made;
  }

  /// The weights in a record in local memory.
  Place weightsOf(Place local) const {
    local.shape.dims[2] = product.weights.dims[2], local.shape.dims[3] = product.weights.dims[3];
    int32_t size = int32_t(hw::sizeOf(product.weightType));
    local.tensor.type = product.weightType;
    local.tensor.strides[2] = int32_t(product.weights.dims[3]) * size, local.tensor.strides[3] = size;
    return local;
  }

  std::optional<Place> parametersOf(Place local) const {
    if (!parameters()) {
      return std::nullopt;
    }
    local.shape.dims[3] = parameters(), local.tensor.type = Type::i32;
    local.tensor.offset += parametersAt, local.tensor.strides[2] = 0, local.tensor.strides[3] = sizeof(int32_t);
    return local;
  }

  void build(const Shape &begin, const Shape &size, Area &area, Tile &tile) {
    uint32_t outputs = size.dims[1], firstOutput = begin.dims[1];
    Rows rows = rowsOf(product.window, product.x.dim(2), begin.dims[2], size.dims[2]);
    bool hasPlanes = !product.depth.isPlain();
    Place x = product.x;
    if (!hasPlanes) {
      x = slice(slice(x, 0, begin.dims[0], size.dims[0], chip), 2, rows.begin, rows.size, chip);
    }
    if (product.groups > 1) {
      uint32_t perGroup = product.y.dim(1) / product.groups, channels = product.x.dim(1) / product.groups;
      uint32_t group = firstOutput / perGroup, end = llvm::divideCeil(firstOutput + outputs, perGroup);
      x = slice(x, 1, group * channels, (end - group) * channels, chip);
    }
    llvm::SmallVector<Place> whole = {product.y};
    if (product.isDepthwise()) {
      whole.push_back(product.x);
    }
    if (product.residual) {
      whole.push_back(*product.residual);
    }
    whole.append(product.extras);
    for (Place &each : whole) {
      each = slice(each, 1, begin.dims[1], size.dims[1], chip);
    }
    area.lane = laneOf(whole);
    bool folds = bool(product.fold);
    auto loadX = [&](Area &from) {
      return hasPlanes               ? loadPlanes(product, x, begin, size, chip, from, tile)
             : folds                 ? loadFolded(product, begin, size, chip, from, tile)
             : product.isDepthwise() ? load(x, from, tile)
                                     : loadAnyLane(x, from, tile);
    };
    Place localX = seesAllOfX(size) && !area.shared ? loadFixed(begin, loadX, area) : loadX(area);
    Place w;
    std::optional<Place> p, r;
    if (product.second) {
      w = loadOnce(slice(*product.second, 1, firstOutput, outputs, chip), begin, area, tile, keptSecond);
    }
    if (!product.second || parameters()) {
      Place local = loadOnce(slice(record, 1, firstOutput, outputs, chip), begin, area, tile, kept);
      p = parametersOf(local), w = product.second ? w : weightsOf(local);
    }
    Place to = tileOf(product.y, begin, size, chip);
    Place y = resultOf(to, area), sums = y;
    llvm::SmallVector<Place> operands;
    if (product.stage) {
      if (product.residual) {
        r = load(tileOf(*product.residual, begin, size, chip), area, tile);
      }
    } else {
      sums = area.allocate(to.shape, product.sumsFloats() ? Type::f32 : Type::i32);
      operands.push_back(sums);
      for (const Place &extra : product.extras) {
        operands.push_back(load(tileOf(extra, begin, size, chip), area, tile));
      }
    }
    hw::Window window = product.window;
    window.padding[0] = rows.padding;
    if (hasPlanes) {
      window = windowOfPlanes(product);
      window.padding[0] = product.isDepthwise() ? int16_t(0) : rows.padding;
    }
    if (folds) {
      window.kernel[0] = window.step[0] = window.dilation[0] = 1, window.padding[0] = 0;
    }
    if (product.fold.columns) {
      window.kernel[1] = window.dilation[1] = 1, window.padding[1] = 0;
    }
    multiply(localX, w, p, r, sums, firstOutput, window, tile);
    if (!product.stage) {
      compute(stream, product.program, y, operands, tile);
    }
    store(y, to, tile);
  }

  /// Whether the tile is one of several that differ in their outputs alone.
  bool seesAllOfX(const Shape &size) const {
    const uint32_t *whole = product.y.shape.dims;
    return product.groups == 1 && size.dims[1] < whole[1] && size.dims[0] == whole[0] && size.dims[2] == whole[2];
  }

  /// x for all such tiles, loaded by the first.
  Place loadFixed(const Shape &begin, llvm::function_ref<Place(Area &)> loadX, Area &area) {
    if (begin.dims[1] == 0) {
      Area own(stream);
      fixedX = loadX(own), fixedBytes = own.used;
    }
    area.fixed += fixedBytes;
    return *fixedX;
  }

  /// The command, or one for each group. The tile's outputs are those from |firstOutput| on.
  void multiply(const Place &x, const Place &w, const std::optional<Place> &p, const std::optional<Place> &r,
                const Place &y, uint32_t firstOutput, const hw::Window &window, Tile &tile) {
    Output sums{.flags = uint8_t(!product.sumsFloats()     ? Output::raw
                                 : product.factors.empty() ? 0
                                                           : Output::perChannel)};
    Output output = product.stage.value_or(sums);
    if (product.sumsFloats() && !product.isDepthwise()) {
      output.flags |= Output::fused;
    }
    if (product.isDepthwise()) {
      hw::depthwise_command c;
      fill(c, x, w, p, r, y, window, output);
      tile.computes.push_back(hw::encode(c));
      return;
    }
    if (product.groups == 1) {
      hw::conv_command c;
      fill(c, x, w, p, r, y, window, output);
      c.channels = x.dim(1); // with all taps that are folded
      tile.computes.push_back(hw::encode(c));
      return;
    }
    uint32_t perGroup = product.y.dim(1) / product.groups, planes = product.depth.isPlain() ? 1 : product.depth.kernel;
    uint32_t channels = product.x.dim(1) / product.groups * planes;
    for (uint32_t done = 0, size = 0; done < y.dim(1); done += size) {
      uint32_t group = (firstOutput + done) / perGroup;
      size = std::min(y.dim(1) - done, (group + 1) * perGroup - firstOutput - done);
      auto part = [&](const Place &place) { return slice(place, 1, done, size, chip); };
      auto optionalPart = [&](const std::optional<Place> &place) {
        return place ? std::optional(part(*place)) : std::nullopt;
      };
      hw::conv_command c;
      fill(c, slice(x, 1, (group - firstOutput / perGroup) * channels, channels, chip), part(w), optionalPart(p),
           optionalPart(r), part(y), window, output);
      c.channels = channels;
      tile.computes.push_back(hw::encode(c));
    }
  }

  template <typename Command>
  void fill(Command &c, const Place &x, const Place &w, const std::optional<Place> &p, const std::optional<Place> &r,
            const Place &y, const hw::Window &window, const Output &output) {
    c.x = x.tensor, c.w = w.tensor, c.y = y.tensor, c.shape = y.shape;
    c.p = p ? p->tensor : Tensor(), c.r = r ? r->tensor : Tensor();
    c.rows = uint16_t(x.dim(2)), c.columns = uint16_t(x.dim(3)), c.window = window, c.output = output;
  }

  Product &product;
  Tiler &tiler;
  Stream &stream;
  const Chip &chip;
  Place record;                    ///< of all outputs, among the constants
  uint32_t parametersAt = 0;       ///< in a record
  std::optional<Place> keptSecond; ///< weights of the same, where they are no constant
  std::optional<Place> kept;       ///< records of the outputs of the tile, in local memory
  std::optional<Place> fixedX;     ///< of all outputs
  uint64_t fixedBytes = 0;
};

} // namespace

llvm::Error appendProduct(Product &product, Tiler &tiler) { return ProductEmitter(product, tiler).run(); }

/// A volume's planes are images.
llvm::Error Emitter::emitConv(device::ConvOp op) {
  if (llvm::Error error = checkProduct(op.getX(), op.getW(), chip)) {
    return error;
  }
  auto xType = cast<RankedTensorType>(op.getX().getType());
  for (int64_t volume = 0; volume < (xType.getRank() == 5 ? xType.getDimSize(0) : 1); ++volume) {
    if (llvm::Error error = emitConvOf(op, volume)) {
      return error;
    }
  }
  return llvm::Error::success();
}

/// The window of a convolution, its depth included.
static llvm::Error setWindow(Product &product, device::ConvOp op) {
  auto xType = cast<RankedTensorType>(op.getX().getType()), wType = cast<RankedTensorType>(op.getW().getType());
  unsigned axes = unsigned(xType.getRank()) - 2, rows = axes - 2;
  for (unsigned axis = 0; axis < axes; ++axis) {
    int64_t fields[] = {wType.getDimSize(2 + axis), op.getStrides()[axis], op.getDilations()[axis]};
    int64_t padding = op.getPads()[axis];
    if (llvm::any_of(fields, [](int64_t field) { return field > 255; }) || std::abs(padding) > INT16_MAX ||
        xType.getDimSize(2 + axis) > UINT16_MAX) {
      return refuse("has a window that a command cannot hold");
    }
    if (axis < rows) {
      product.depth = {uint32_t(fields[0]), uint32_t(fields[1]), uint32_t(fields[2]), int32_t(padding)};
      continue;
    }
    unsigned to = axis - rows;
    product.window.kernel[to] = uint8_t(fields[0]), product.window.step[to] = uint8_t(fields[1]);
    product.window.dilation[to] = uint8_t(fields[2]), product.window.padding[to] = int16_t(padding);
  }
  product.window.padValue = int16_t(op.getPadValue());
  if (product.isDepthwise() && product.depth.kernel * product.window.kernel[0] > 255) {
    return refuse("has a window that a command cannot hold");
  }
  return llvm::Error::success();
}

llvm::Error Emitter::emitConvOf(device::ConvOp op, int64_t volume) {
  auto wType = cast<RankedTensorType>(op.getW().getType()), yType = cast<RankedTensorType>(op.getY().getType());
  bool isDepthwise = op.getGroups() > 1 && wType.getDimSize(1) == 1 && int64_t(op.getGroups()) == yType.getDimSize(1);
  llvm::Expected<Place> x = placeImages(op.getX(), volume), y = placeImages(op.getY(), volume);
  if (!x || !y) {
    return llvm::joinErrors(x.takeError(), y.takeError());
  }
  Product product;
  product.x = *x, product.y = *y;
  product.groups = uint32_t(op.getGroups());
  if (llvm::Error error = setWindow(product, op)) {
    return error;
  }
  auto placeExtra = [&](Value value) { return placeBroadcastImages(value, yType.getShape(), volume); };
  if (llvm::Error error =
          setEpilogue(product, op.getEpilogue(), op.getExtras(), yType.getElementType(), stream, placeExtra)) {
    return error;
  }
  const ProductConstants constants{op.getW(), op.getBias(), op.getScales(),
                                   device::WeightScales::ofConv(wType.getShape(), op.getWeightGroup())};
  if (llvm::Error error = constants.setParameters(product)) {
    return error;
  }
  uint32_t channels = uint32_t(wType.getDimSize(1)), planes = product.depth.kernel;
  product.fold = product.depth.isPlain() ? planFold(product, chip) : Fold();
  bool folds = bool(product.fold);
  uint32_t outputs = product.y.dim(1), rows = folds ? product.window.kernel[0] : planes;
  uint32_t taps = product.window.kernel[0] * product.window.kernel[1] / (folds ? rows : 1);
  auto [known, isNew] = stream.constants.weights.try_emplace({op.getOperation(), folds, volume});
  if (isNew) {
    llvm::Expected<std::vector<char>> weights = constants.weights(product.weightType);
    if (!weights) {
      stream.constants.weights.erase(known);
      return weights.takeError();
    }
    size_t size = hw::sizeOf(product.weightType);
    if (rows > 1 && !product.isDepthwise()) {
      *weights = foldRows(*weights, outputs, channels, rows, taps * size);
    }
    product.ordered = product.isDepthwise() ? std::move(*weights)
                                            : orderWeights(std::move(*weights), outputs, channels * rows, taps, size);
  }
  // Channels of a tap lie one after another, so columns as channels are what they were as taps.
  uint32_t columns = product.fold.columns ? taps : 1;
  product.record = &known->second;
  product.weights = Shape{{1, outputs, taps / columns, channels * rows * columns}};
  if (product.isDepthwise()) {
    product.weights.dims[2] = planes * product.window.kernel[0], product.weights.dims[3] = product.window.kernel[1];
  }
  return appendProduct(product, tiler);
}

/// Rows of a are rows of an image one wide, its columns channels.
llvm::Error Emitter::emitMatMul(device::MatMulOp op) {
  auto aType = cast<RankedTensorType>(op.getA().getType()), bType = cast<RankedTensorType>(op.getB().getType()),
       yType = cast<RankedTensorType>(op.getY().getType());
  if (op.getTransA() || bType.getRank() != 2 || !device::getConstantRoot(op.getB())) {
    return emitMatMuls(op);
  }
  if (llvm::Error error = checkProduct(op.getA(), op.getB(), chip)) {
    return error;
  }
  int64_t inner = aType.getShape().back(), outputs = yType.getShape().back();
  int64_t rows = yType.getNumElements() / outputs;
  if (rows > UINT16_MAX) {
    return refuse("has more rows than a command can hold");
  }
  auto placeColumns = [&](const Seen &seen, int64_t columns) {
    return place(seen.value, {1, columns, rows, 1}, {0, *seen.strideOf(1, columns), *seen.strideOf(columns, rows), 1},
                 seen.offset);
  };
  const Folds::Tail *tail = folds.tailOf(op);
  llvm::Expected<Place> x = placeColumns(folds.seen(op.getA()), inner);
  llvm::Expected<Place> y = placeColumns(tail ? tail->targets.front() : folds.seen(op.getY()), outputs);
  if (!x || !y) {
    return llvm::joinErrors(x.takeError(), y.takeError());
  }
  Product product;
  product.x = *x, product.y = *y;
  // All leading dims are rows: what broadcasts over some of them only has no stride.
  auto placeExtra = [&](Value value) -> llvm::Expected<Place> {
    auto type = cast<RankedTensorType>(value.getType());
    int64_t count = type.getNumElements(), last = type.getRank() ? type.getShape().back() : 1;
    Seen seen = folds.seen(value); // also where one row, or one column, is all of a result
    if (count == 1 || (last == outputs && count == outputs)) {
      return place(seen.value, {1, outputs, rows, 1}, {0, count == 1 ? 0 : *seen.strideOf(1, outputs), 0, 0},
                   seen.offset);
    }
    if (last == 1 && count == rows) {
      return place(seen.value, {1, outputs, rows, 1}, {0, 0, *seen.strideOf(1, rows), 0}, seen.offset);
    }
    if (count != rows * outputs) {
      return refuse("has an epilogue that broadcasts over some of the leading dims, which is not emitted yet");
    }
    return placeColumns(seen, outputs);
  };
  if (llvm::Error error =
          setEpilogue(product, op.getEpilogue(), op.getExtras(), yType.getElementType(), stream, placeExtra)) {
    return error;
  }
  const ProductConstants constants{
      op.getB(), op.getBias(), op.getScales(),
      device::WeightScales::ofMatMul(bType.getShape(), op.getWeightGroup(), op.getTransB())};
  if (llvm::Error error = constants.setParameters(product)) {
    return error;
  }
  auto [known, isNew] = stream.constants.weights.try_emplace({op.getOperation(), false, 0});
  if (isNew) {
    llvm::Expected<std::vector<char>> weights = constants.weights(product.weightType);
    if (!weights) {
      stream.constants.weights.erase(known);
      return weights.takeError();
    }
    // Rows are what taps are to a convolution of one output: they come first where the columns are outputs.
    product.ordered = op.getTransB()
                          ? std::move(*weights)
                          : orderWeights(std::move(*weights), 1, inner, outputs, hw::sizeOf(product.weightType));
  }
  product.record = &known->second, product.weights = Shape{{1, uint32_t(outputs), 1, uint32_t(inner)}};
  return appendProduct(product, tiler);
}

} // namespace tessera::npu
