//===- ContractionTiles.cpp - Contractions cut into tiles -----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Contraction/Contraction.h"

#include "llvm/Support/MathExtras.h"
#include <cstring>

namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Output;
using bmodel::npu::Type;
namespace {

/// Cuts a contraction into tiles over images, outputs and rows.
class ContractionTiles {
public:
  ContractionTiles(Contraction &contraction, Tiler &tiler)
      : contraction(contraction), tiler(tiler), stream(tiler.stream), chip(stream.chip) {}

  llvm::Error run() {
    record = placeRecord();
    return tiler.append(contraction.y.shape, Shape{{1, outputsAtLeast(), 1, 0}},
                        [&](const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile) {
                          build(begin, size, localBudget, tile);
                        });
  }

private:
  /// Returns the unit in which outputs are cut. A cut through a group of a grouped convolution loads its channels of x
  /// for both parts. It is only allowed if the weights of a group take a large share of local memory.
  uint32_t outputsAtLeast() const {
    uint32_t perGroup = contraction.y.dim(1) / contraction.groups;
    if (contraction.groups == 1 || contraction.isDepthwise()) {
      return chip.lanes;
    }
    uint64_t bytes = uint64_t(record.dim(3)) * (perGroup / chip.lanes);
    return perGroup % chip.lanes == 0 && bytes > chip.laneBytes / 4 ? chip.lanes : perGroup;
  }

  uint32_t parameters() const { return contraction.epilogue.parameters(); }

  /// Returns the view of the outputs' records among the constants. A record is loaded at once and consists of the
  /// weights of an output, followed by its parameters.
  TileView placeRecord() {
    uint32_t outputs = contraction.y.dim(1), size = uint32_t(hw::sizeOf(contraction.weights.type));
    uint32_t weights =
        contraction.weights.variable ? 0 : contraction.weights.shape.dims[2] * contraction.weights.shape.dims[3] * size;
    parametersAt = uint32_t(llvm::alignTo(weights, sizeof(int32_t)));
    uint32_t bytes = parameters() ? parametersAt + parameters() * uint32_t(sizeof(int32_t)) : weights;
    if (!contraction.weights.ordered.empty() || (contraction.weights.variable && parameters())) {
      std::vector<char> table(size_t(outputs) * bytes);
      for (uint32_t o = 0; o < outputs; ++o) {
        char *row = &table[size_t(o) * bytes];
        std::copy_n(contraction.weights.ordered.begin() + size_t(o) * weights, weights, row);
        std::array<int32_t, 3> numbers = contraction.epilogue.parametersOf(o);
        std::memcpy(row + parametersAt, numbers.data(), parameters() * sizeof(int32_t));
      }
      *contraction.weights.record = stream.addConstant(table);
    }
    TileView result;
    result.shape = {{1, outputs, 1, bytes}};
    result.tensor = {.offset = *contraction.weights.record,
                     .strides = {0, int32_t(bytes), 0, 1},
                     .region = Region::constants,
                     .type = Type::i8};
    return result;
  }

  /// Returns the view of the weights in a local record.
  TileView weightsOf(TileView local) const {
    local.shape.dims[2] = contraction.weights.shape.dims[2], local.shape.dims[3] = contraction.weights.shape.dims[3];
    int32_t size = int32_t(hw::sizeOf(contraction.weights.type));
    local.tensor.type = contraction.weights.type;
    local.tensor.strides[2] = int32_t(contraction.weights.shape.dims[3]) * size, local.tensor.strides[3] = size;
    return local;
  }

  std::optional<TileView> parametersOf(TileView local) const {
    if (!parameters()) {
      return std::nullopt;
    }
    local.shape.dims[3] = parameters(), local.tensor.type = Type::i32;
    local.tensor.offset += parametersAt, local.tensor.strides[2] = 0, local.tensor.strides[3] = sizeof(int32_t);
    return local;
  }

  void build(const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile) {
    localBudget.lane = laneOfTile(contraction, contraction.isDepthwise(), begin, size, chip);
    TileView x = loadX(begin, size, localBudget, tile);
    auto [w, p] = loadWeights(begin, size, localBudget, tile);
    TileView to = tileOf(contraction.y, begin, size, chip);
    TileView y = resultOf(to, localBudget), sums = y;
    std::optional<TileView> r;
    llvm::SmallVector<TileView> operands;
    if (contraction.epilogue.stage) {
      if (contraction.epilogue.residual) {
        r = load(tileOf(*contraction.epilogue.residual, begin, size, chip), localBudget, tile);
      }
    } else {
      sums = localBudget.allocate(to.shape, contraction.sumsFloats() ? Type::f32 : Type::i32);
      operands.push_back(sums);
      for (const TileView &extra : contraction.epilogue.extras) {
        operands.push_back(load(tileOf(extra, begin, size, chip), localBudget, tile));
      }
    }
    multiply(x, w, p, r, sums, begin.dims[1], windowOf(begin, size), tile);
    if (!contraction.epilogue.stage) {
      compute(stream, contraction.epilogue.program, y, operands, tile);
    }
    store(y, to, tile);
  }

  /// Returns the part of x that the tile sees, in local memory.
  TileView loadX(const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile) {
    uint32_t outputs = size.dims[1], firstOutput = begin.dims[1];
    bool hasPlanes = !contraction.depth.isPlain(), fusedOps = bool(contraction.im2col);
    TileView x = contraction.x;
    if (!hasPlanes) {
      Rows rows = rowsOf(contraction.window, contraction.x.dim(2), begin.dims[2], size.dims[2]);
      x = slice(slice(x, 0, begin.dims[0], size.dims[0], chip), 2, rows.begin, rows.size, chip);
    }
    if (contraction.groups > 1) {
      uint32_t perGroup = contraction.y.dim(1) / contraction.groups,
               channels = contraction.x.dim(1) / contraction.groups;
      uint32_t group = firstOutput / perGroup, end = llvm::divideCeil(firstOutput + outputs, perGroup);
      x = slice(x, 1, group * channels, (end - group) * channels, chip);
    }
    auto loadTo = [&](LocalBudget &from) {
      return hasPlanes                   ? loadPlanes(contraction, x, begin, size, chip, from, tile)
             : fusedOps                  ? loadIm2col(contraction, begin, size, stream, from, tile)
             : contraction.isDepthwise() ? load(x, from, tile)
                                         : loadAnyLane(x, from, tile);
    };
    return seesAllOfX(size) && !localBudget.shared ? loadFixed(begin, loadTo, localBudget) : loadTo(localBudget);
  }

  /// Returns weights and parameters of the tile's outputs in local memory.
  std::pair<TileView, std::optional<TileView>> loadWeights(const Shape &begin, const Shape &size,
                                                           LocalBudget &localBudget, Tile &tile) {
    uint32_t outputs = size.dims[1], firstOutput = begin.dims[1];
    std::pair<TileView, std::optional<TileView>> result;
    if (contraction.weights.variable) {
      result.first = loadOnce(slice(*contraction.weights.variable, 1, firstOutput, outputs, chip), begin, localBudget,
                              tile, keptSecond);
    }
    if (!contraction.weights.variable || parameters()) {
      TileView local = loadOnce(slice(record, 1, firstOutput, outputs, chip), begin, localBudget, tile, liveAcross);
      result.second = parametersOf(local),
      result.first = contraction.weights.variable ? result.first : weightsOf(local);
    }
    return result;
  }

  /// Returns the window over the result of loadX.
  hw::Window windowOf(const Shape &begin, const Shape &size) const {
    int16_t padding = rowsOf(contraction.window, contraction.x.dim(2), begin.dims[2], size.dims[2]).padding;
    hw::Window window = contraction.window;
    window.padding[0] = padding;
    if (!contraction.depth.isPlain()) {
      window = windowOfPlanes(contraction);
      window.padding[0] = contraction.isDepthwise() ? int16_t(0) : padding;
    }
    if (contraction.im2col) {
      window.kernel[0] = window.step[0] = window.dilation[0] = 1, window.padding[0] = 0;
    }
    if (contraction.im2col.columns > 1) {
      window = windowOfIm2col(window, contraction.im2col);
    }
    return window;
  }

  /// Returns true if the tile is one of several that only differ in their outputs.
  bool seesAllOfX(const Shape &size) const {
    const uint32_t *whole = contraction.y.shape.dims;
    return contraction.groups == 1 && size.dims[1] < whole[1] && size.dims[0] == whole[0] && size.dims[2] == whole[2];
  }

  /// Returns x for all such tiles, loaded by the first of them.
  TileView loadFixed(const Shape &begin, llvm::function_ref<TileView(LocalBudget &)> loadX, LocalBudget &localBudget) {
    if (begin.dims[1] == 0) {
      LocalBudget own(stream);
      fixedX = loadX(own), fixedBytes = own.used;
    }
    localBudget.fixed += fixedBytes;
    return *fixedX;
  }

  /// Appends the command, or one for each group. |firstOutput|: first output of the tile.
  void multiply(const TileView &x, const TileView &w, const std::optional<TileView> &p,
                const std::optional<TileView> &r, const TileView &y, uint32_t firstOutput, const hw::Window &window,
                Tile &tile) {
    Output sums{.flags = uint8_t(!contraction.sumsFloats()              ? Output::raw
                                 : contraction.epilogue.factors.empty() ? 0
                                                                        : Output::perChannel)};
    Output output = contraction.epilogue.stage.value_or(sums);
    if (contraction.sumsFloats() && !contraction.isDepthwise()) {
      output.flags |= Output::fused;
    }
    if (contraction.isDepthwise()) {
      hw::depthwise_command c;
      fill(c, x, w, p, r, y, window, output);
      tile.computes.push_back(hw::encode(c));
      return;
    }
    if (contraction.groups == 1) {
      hw::conv_command c;
      fill(c, x, w, p, r, y, window, output);
      c.channels = x.dim(1); // including folded taps
      tile.computes.push_back(hw::encode(c));
      return;
    }
    uint32_t perGroup = contraction.y.dim(1) / contraction.groups,
             planes = contraction.depth.isPlain() ? 1 : contraction.depth.kernel;
    uint32_t channels = contraction.x.dim(1) / contraction.groups * planes;
    for (uint32_t done = 0, size = 0; done < y.dim(1); done += size) {
      uint32_t group = (firstOutput + done) / perGroup;
      size = std::min(y.dim(1) - done, (group + 1) * perGroup - firstOutput - done);
      auto part = [&](const TileView &place) { return slice(place, 1, done, size, chip); };
      auto optionalPart = [&](const std::optional<TileView> &place) {
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
  void fill(Command &c, const TileView &x, const TileView &w, const std::optional<TileView> &p,
            const std::optional<TileView> &r, const TileView &y, const hw::Window &window, const Output &output) {
    c.x = x.tensor, c.w = w.tensor, c.y = y.tensor, c.shape = y.shape;
    c.p = p ? p->tensor : Tensor(), c.r = r ? r->tensor : Tensor();
    c.rows = uint16_t(x.dim(2)), c.columns = uint16_t(x.dim(3)), c.window = window, c.output = output;
  }

  Contraction &contraction;
  Tiler &tiler;
  CommandStream &stream;
  const Chip &chip;
  TileView record;                    ///< records of all outputs, among the constants
  uint32_t parametersAt = 0;          ///< offset of the parameters in a record
  std::optional<TileView> keptSecond; ///< weights of the same outputs, if they are not constant
  std::optional<TileView> liveAcross; ///< records of the tile's outputs, in local memory
  std::optional<TileView> fixedX;     ///< x, shared by the tiles of all outputs
  uint64_t fixedBytes = 0;
};

} // namespace

llvm::Error appendContraction(Contraction &contraction, Tiler &tiler) {
  return ContractionTiles(contraction, tiler).run();
}

uint16_t laneOfTile(const Contraction &contraction, bool hasColumns, const Shape &begin, const Shape &size,
                    const Chip &chip) {
  llvm::SmallVector<TileView> whole = {contraction.y};
  if (hasColumns) {
    whole.push_back(contraction.x);
  }
  if (contraction.epilogue.residual) {
    whole.push_back(*contraction.epilogue.residual);
  }
  whole.append(contraction.epilogue.extras);
  for (TileView &each : whole) {
    each = slice(each, 1, begin.dims[1], size.dims[1], chip);
  }
  return laneOf(whole);
}

} // namespace tessera::npu
