//===- EmitProducts.cpp - Convolutions and matrix products of the NPU -----===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emitter.h"
#include "codegen/Npu/Product.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Output;
using bmodel::npu::Type;
namespace {

/// Tiles over images, outputs and rows.
class ProductEmitter {
public:
  ProductEmitter(Product &product, Stream &stream) : product(product), stream(stream), chip(stream.chip) {}

  llvm::Error run() {
    parameters = addParameters();
    uint32_t perGroup = product.y.dim(1) / product.groups;
    // A cut through a group would leave it some channels of x without outputs.
    uint32_t unit = product.groups == 1 ? chip.lanes : product.isDepthwise() ? chip.lanes : perGroup;
    return appendTiles(
        stream, product.y.shape, Shape{{1, unit, 1, 0}}, 0,
        [&](const Shape &begin, const Shape &size, Area &area, Tile &tile) { return build(begin, size, area, tile); });
  }

private:
  /// Bias and factor of each output, as the commands read them.
  std::optional<Place> addParameters() {
    uint32_t outputs = product.y.dim(1);
    if (product.bias.empty() && product.factors.empty()) {
      return std::nullopt;
    }
    std::vector<int32_t> table(2 * size_t(outputs));
    for (uint32_t o = 0; o < outputs; ++o) {
      table[2 * o] = product.bias.empty() ? 0 : product.bias[o];
      table[2 * o + 1] = llvm::bit_cast<int32_t>(product.factors.empty() ? 1.0f : product.factors[o]);
    }
    Place made;
    made.shape = {{1, outputs, 1, 2}};
    made.tensor = {.offset = stream.addConstant({reinterpret_cast<const char *>(table.data()), table.size() * 4}),
                   .strides = {0, 8, 0, 4},
                   .region = Region::constants,
                   .type = Type::i32};
    return made;
  }

  Place tileOf(Place place, const Shape &begin, const Shape &size) const {
    for (unsigned dim = 0; dim < 4; ++dim) {
      place = slice(place, dim, begin.dims[dim], size.dims[dim], chip);
    }
    return place;
  }

  bool build(const Shape &begin, const Shape &size, Area &area, Tile &tile) {
    uint32_t outputs = size.dims[1], firstOutput = begin.dims[1];
    Rows rows = rowsOf(product.window, product.x.dim(2), begin.dims[2], size.dims[2]);
    Place x = slice(slice(product.x, 0, begin.dims[0], size.dims[0], chip), 2, rows.begin, rows.size, chip);
    if (product.groups > 1) {
      uint32_t perGroup = product.y.dim(1) / product.groups, channels = product.x.dim(1) / product.groups;
      x = slice(x, 1, firstOutput / perGroup * channels, outputs / perGroup * channels, chip);
    }
    Place localX = load(x, area, tile);
    Place w = load(slice(product.weights, 1, firstOutput, outputs, chip), area, tile);
    std::optional<Place> p, r;
    if (parameters) {
      p = load(slice(*parameters, 1, firstOutput, outputs, chip), area, tile);
    }
    Place to = tileOf(product.y, begin, size);
    Place y = area.allocate(to.shape, to.tensor.type), sums = y;
    llvm::SmallVector<Place> operands;
    if (product.stage) {
      if (product.residual) {
        r = load(tileOf(*product.residual, begin, size), area, tile);
      }
    } else {
      sums = area.allocate(to.shape, Type::i32);
      operands.push_back(sums);
      for (const Place &extra : product.extras) {
        operands.push_back(load(tileOf(extra, begin, size), area, tile));
      }
    }
    if (area.isFull()) {
      return false;
    }
    hw::Window window = product.window;
    window.padding[0] = rows.padding;
    multiply(localX, w, p, r, sums, window, tile);
    if (!product.stage) {
      compute(stream, product.program, y, operands, tile);
    }
    store(y, to, tile);
    return true;
  }

  /// The command, or one for each group.
  void multiply(const Place &x, const Place &w, const std::optional<Place> &p, const std::optional<Place> &r,
                const Place &y, const hw::Window &window, Tile &tile) {
    Output output = product.stage.value_or(Output{.flags = Output::raw});
    if (product.isDepthwise()) {
      hw::depthwise_command c;
      fill(c, x, w, p, r, y, window, output);
      tile.computes.push_back(hw::encode(c));
      return;
    }
    uint32_t perGroup = product.y.dim(1) / product.groups, channels = product.x.dim(1) / product.groups;
    uint32_t groups = product.groups == 1 ? 1 : y.dim(1) / perGroup;
    for (uint32_t group = 0; group < groups; ++group) {
      auto part = [&](const Place &place, uint32_t size) { return slice(place, 1, group * size, size, chip); };
      auto optionalPart = [&](const std::optional<Place> &place) {
        return place ? std::optional(part(*place, perGroup)) : std::nullopt;
      };
      hw::conv_command c;
      if (product.groups == 1) {
        fill(c, x, w, p, r, y, window, output);
        c.channels = x.dim(1);
      } else {
        fill(c, part(x, channels), part(w, perGroup), optionalPart(p), optionalPart(r), part(y, perGroup), window,
             output);
        c.channels = channels;
      }
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
  Stream &stream;
  const Chip &chip;
  std::optional<Place> parameters;
};

/// Weights in the order in which the unit reads them: channels of a tap one after another.
Place addWeights(Stream &stream, ArrayRef<char> bytes, uint32_t outputs, uint32_t channels, uint32_t taps) {
  std::vector<char> ordered(bytes.size());
  for (size_t o = 0; o < outputs; ++o) {
    for (size_t c = 0; c < channels; ++c) {
      for (size_t t = 0; t < taps; ++t) {
        ordered[(o * taps + t) * channels + c] = bytes[(o * channels + c) * taps + t];
      }
    }
  }
  Place made;
  made.shape = {{1, outputs, taps, channels}};
  made.tensor = {.offset = stream.addConstant(ordered),
                 .strides = {0, int32_t(taps * channels), int32_t(channels), 1},
                 .region = Region::constants,
                 .type = Type::i8};
  return made;
}

bool isInteger(Value value) { return isa<IntegerType>(cast<RankedTensorType>(value.getType()).getElementType()); }

} // namespace

llvm::Error appendProduct(Product &product, Stream &stream) { return ProductEmitter(product, stream).run(); }

llvm::Error Emitter::emitConv(device::ConvOp op) {
  auto xType = cast<RankedTensorType>(op.getX().getType()), wType = cast<RankedTensorType>(op.getW().getType()),
       yType = cast<RankedTensorType>(op.getY().getType());
  if (xType.getRank() != 4 || !isInteger(op.getX()) || op.getScales()) {
    return refuse("is a convolution of floats or of three dims, which is not emitted yet");
  }
  auto dense = [](ArrayRef<int64_t> s) { return SmallVector<int64_t>{s[1] * s[2] * s[3], s[2] * s[3], s[3], 1}; };
  llvm::Expected<Place> x = place(op.getX(), xType.getShape(), dense(xType.getShape()));
  llvm::Expected<Place> y = place(op.getY(), yType.getShape(), dense(yType.getShape()));
  llvm::Expected<std::vector<char>> weights = constantValues<char>(op.getW(), "weights");
  if (!x || !y || !weights) {
    return llvm::joinErrors(llvm::joinErrors(x.takeError(), y.takeError()), weights.takeError());
  }
  Product product;
  product.x = *x, product.y = *y;
  product.groups = uint32_t(op.getGroups());
  uint32_t taps = uint32_t(wType.getDimSize(2) * wType.getDimSize(3));
  for (int axis = 0; axis < 2; ++axis) {
    int64_t fields[] = {wType.getDimSize(2 + axis), op.getStrides()[axis], op.getDilations()[axis]};
    if (llvm::any_of(fields, [](int64_t field) { return field > 255; }) || std::abs(op.getPads()[axis]) > INT16_MAX ||
        xType.getDimSize(2 + axis) > UINT16_MAX) {
      return refuse("has a window that a command cannot hold");
    }
    product.window.kernel[axis] = uint8_t(fields[0]), product.window.step[axis] = uint8_t(fields[1]);
    product.window.dilation[axis] = uint8_t(fields[2]), product.window.padding[axis] = int16_t(op.getPads()[axis]);
  }
  product.window.padValue = int16_t(op.getPadValue());
  uint32_t channels = uint32_t(wType.getDimSize(1));
  product.weights = addWeights(stream, *weights, product.y.dim(1), channels, taps);
  if (product.isDepthwise()) {
    product.weights.shape = {{1, product.y.dim(1), product.window.kernel[0], product.window.kernel[1]}};
    product.weights.tensor.strides[1] = int32_t(taps), product.weights.tensor.strides[2] = product.window.kernel[1];
  }
  if (op.getBias()) {
    llvm::Expected<std::vector<int32_t>> bias = constantValues<int32_t>(op.getBias(), "a bias");
    if (!bias) {
      return bias.takeError();
    }
    product.bias = std::move(*bias);
  }
  auto placeExtra = [&](Value value) { return placeBroadcast(value, product.y.shape, {0, 1, 2, 3}); };
  if (llvm::Error error = setEpilogue(product, op.getEpilogue(), op.getExtras(), yType.getElementType(), placeExtra)) {
    return error;
  }
  return appendProduct(product, stream);
}

/// Rows of a are rows of an image one wide, its columns channels.
llvm::Error Emitter::emitMatMul(device::MatMulOp op) {
  auto aType = cast<RankedTensorType>(op.getA().getType()), bType = cast<RankedTensorType>(op.getB().getType()),
       yType = cast<RankedTensorType>(op.getY().getType());
  if (!isInteger(op.getA()) || op.getScales() || op.getTransA() || bType.getRank() != 2) {
    return refuse("is a product of floats, of a transposed or of several second matrices, which is not emitted yet");
  }
  int64_t inner = aType.getShape().back(), outputs = yType.getShape().back();
  int64_t rows = yType.getNumElements() / outputs;
  if (rows > UINT16_MAX) {
    return refuse("has more rows than a command can hold");
  }
  llvm::Expected<Place> x = place(op.getA(), {1, inner, rows, 1}, {0, 1, inner, 1});
  llvm::Expected<Place> y = place(op.getY(), {1, outputs, rows, 1}, {0, 1, outputs, 1});
  llvm::Expected<std::vector<char>> weights = constantValues<char>(op.getB(), "a second matrix");
  if (!x || !y || !weights) {
    return llvm::joinErrors(llvm::joinErrors(x.takeError(), y.takeError()), weights.takeError());
  }
  Product product;
  product.x = *x, product.y = *y;
  std::vector<char> ordered = *weights;
  for (int64_t k = 0; k < inner && !op.getTransB(); ++k) {
    for (int64_t o = 0; o < outputs; ++o) {
      ordered[o * inner + k] = (*weights)[k * outputs + o];
    }
  }
  product.weights = addWeights(stream, ordered, uint32_t(outputs), uint32_t(inner), 1);
  if (op.getBias()) {
    llvm::Expected<std::vector<int32_t>> bias = constantValues<int32_t>(op.getBias(), "a bias");
    if (!bias) {
      return bias.takeError();
    }
    product.bias = std::move(*bias);
  }
  // All leading dims are rows: what broadcasts over some of them only has no stride.
  auto placeExtra = [&](Value value) -> llvm::Expected<Place> {
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getNumElements() == outputs || type.getNumElements() == 1) {
      return place(value, {1, outputs, rows, 1}, {0, type.getNumElements() == 1 ? 0 : 1, 0, 0});
    }
    if (type.getNumElements() != rows * outputs) {
      return refuse("has an epilogue that broadcasts over some of the leading dims, which is not emitted yet");
    }
    return place(value, {1, outputs, rows, 1}, {0, 1, outputs, 1});
  };
  if (llvm::Error error = setEpilogue(product, op.getEpilogue(), op.getExtras(), yType.getElementType(), placeExtra)) {
    return error;
  }
  return appendProduct(product, stream);
}

} // namespace tessera::npu
