//===- Shapes.cpp - Handlers of operators that move elements --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Tflite/OperatorImporter.h"

#include "top_dialect/IR/Constants.h"

#include "llvm/Support/FormatVariadic.h"

namespace tessera::top::tflite_import {
namespace {

template <typename Vector>
Ints toInts(const Vector *vector) {
  return vector ? Ints(vector->begin(), vector->end()) : Ints();
}

/// The shape is the second input, or an option in old files.
void reshape(OperatorImporter &n) {
  Ints dims = n.hasInput(1) ? n.constantInts(1, "the shape") : toInts(n.options<tflite::ReshapeOptions>().new_shape());
  n.setOutput(0, n.reshape(n.input(0), dims));
}

void squeeze(OperatorImporter &n) {
  Value x = n.input(0);
  Ints axes = toInts(n.options<tflite::SqueezeOptions>().squeeze_dims()), dims;
  for (int64_t &axis : axes) {
    axis = n.normalizeAxis(axis, n.rank(x));
    if (!n.failed() && n.shape(x)[axis] != 1) {
      n.fail(llvm::formatv("dim {0} is {1}; only dims of 1 can be removed", axis, n.shape(x)[axis]));
    }
  }
  for (auto [d, dim] : llvm::enumerate(n.shape(x))) {
    if (axes.empty() ? dim != 1 : !llvm::is_contained(axes, int64_t(d))) {
      dims.push_back(dim);
    }
  }
  n.setOutput(0, n.reshape(x, dims));
}

Value insertDim(OperatorImporter &n, Value x, int64_t axis) {
  Ints dims(n.shape(x));
  dims.insert(dims.begin() + n.normalizeAxis(axis, n.rank(x) + 1), 1);
  return n.reshape(x, dims);
}

void expandDims(OperatorImporter &n) { n.setOutput(0, insertDim(n, n.input(0), n.constantInt(1, "the axis"))); }

void transpose(OperatorImporter &n) {
  n.setOutput(0, n.create<TransposeOp>(n.input(0), n.constantInts(1, "the permutation")));
}

void concatenation(OperatorImporter &n) {
  const auto &options = n.options<tflite::ConcatenationOptions>();
  auto parts = n.inputs();
  if (parts.empty()) {
    return n.fail("it has no inputs");
  }
  Value y = n.create<ConcatOp>(mlir::ValueRange(parts), n.normalizeAxis(options.axis(), n.rank(parts.front())));
  n.setOutput(0, n.activate(y, options.fused_activation_function()));
}

void pack(OperatorImporter &n) {
  const auto &options = n.options<tflite::PackOptions>();
  auto parts = n.inputs();
  if (parts.empty() || options.values_count() != int64_t(parts.size())) {
    return n.fail(llvm::formatv("it has {0} inputs; expected {1}", parts.size(), options.values_count()));
  }
  for (Value &part : parts) {
    part = insertDim(n, part, options.axis());
  }
  int64_t axis = n.normalizeAxis(options.axis(), n.rank(parts.front()));
  n.setOutput(0, n.create<ConcatOp>(mlir::ValueRange(parts), axis));
}

/// Sets the outputs to consecutive parts of |x| along |axis| that have the |sizes|.
void splitInto(OperatorImporter &n, Value x, int64_t axis, llvm::ArrayRef<int64_t> sizes, bool removesDim) {
  int64_t total = 0;
  for (int64_t size : sizes) {
    total += size;
  }
  if (n.failed() || sizes.size() != n.numOutputs() || total != n.shape(x)[axis]) {
    return n.fail("its parts do not fit its operand");
  }
  Ints starts(n.rank(x), 0), dims(n.shape(x)), steps(n.rank(x), 1);
  for (auto [i, size] : llvm::enumerate(sizes)) {
    dims[axis] = size;
    Value part = n.slice(x, starts, dims, steps);
    if (removesDim) {
      Ints rest(dims);
      rest.erase(rest.begin() + axis);
      part = n.reshape(part, rest);
    }
    n.setOutput(i, part);
    starts[axis] += size;
  }
}

void unpack(OperatorImporter &n) {
  Value x = n.input(0);
  int64_t axis = n.normalizeAxis(n.options<tflite::UnpackOptions>().axis(), n.rank(x));
  splitInto(n, x, axis, Ints(n.numOutputs(), 1), true);
}

void split(OperatorImporter &n) {
  Value x = n.input(1);
  int64_t axis = n.normalizeAxis(n.constantInt(0, "the axis"), n.rank(x)), parts = n.numOutputs();
  if (n.failed() || parts == 0 || n.options<tflite::SplitOptions>().num_splits() != parts) {
    return n.fail("its options do not fit the number of its outputs");
  }
  splitInto(n, x, axis, Ints(parts, n.shape(x)[axis] / parts), false);
}

/// One of the sizes may be -1: the rest.
void splitV(OperatorImporter &n) {
  Value x = n.input(0);
  Ints sizes = n.constantInts(1, "the sizes");
  int64_t axis = n.normalizeAxis(n.constantInt(2, "the axis"), n.rank(x));
  if (n.failed()) {
    return;
  }
  int64_t rest = n.shape(x)[axis], *open = llvm::find(sizes, -1);
  for (int64_t size : sizes) {
    rest -= size == -1 ? 0 : size;
  }
  if (open != sizes.end()) {
    *open = rest;
  }
  if (llvm::any_of(sizes, [](int64_t size) { return size < 0; })) {
    return n.fail("its sizes are negative");
  }
  splitInto(n, x, axis, sizes, false);
}

/// Converts paddings [rank, 2] to all begins, then all ends.
Ints padsInput(OperatorImporter &n, Value x) {
  Ints pairs = n.constantInts(1, "the padding"), pads(2 * n.rank(x));
  if (n.failed() || pairs.size() != pads.size() || llvm::any_of(pairs, [](int64_t pad) { return pad < 0; })) {
    n.fail("its paddings must have two entries per dim, which are not negative");
    return pads;
  }
  for (size_t i = 0; i < pairs.size(); ++i) {
    pads[i / 2 + (i % 2) * n.rank(x)] = pairs[i];
  }
  return pads;
}

void pad(OperatorImporter &n) {
  double value = 0;
  if (n.hasInput(2)) {
    auto given = getConstantDoubles(n.input(2));
    if (!given || given->size() != 1) {
      return n.unsupported("a padding value that is not one constant is not supported");
    }
    value = given->front();
  }
  n.setOutput(0, padded(n, value));
}

void mirrorPad(OperatorImporter &n) {
  Value x = n.input(0);
  if (n.options<tflite::MirrorPadOptions>().mode() != tflite::MirrorPadMode::REFLECT) {
    n.unsupported("only the mode REFLECT is supported");
  }
  Ints pads = padsInput(n, x);
  n.setOutput(0, n.create<PadOp>(x, pads, PadMode::reflect, llvm::APFloat(0.0)));
}

void tile(OperatorImporter &n) {
  n.setOutput(0, n.create<TileOp>(n.input(0), n.constantInts(1, "the number of repetitions")));
}

void broadcastTo(OperatorImporter &n) {
  n.setOutput(0, n.create<ExpandOp>(n.input(0), Value(), n.constantInts(1, "the shape")));
}

void fill(OperatorImporter &n) {
  n.setOutput(0, n.create<ExpandOp>(n.input(1), Value(), n.constantInts(0, "the shape")));
}

void zerosLike(OperatorImporter &n) {
  Value x = n.input(0);
  n.setOutput(0, n.create<ExpandOp>(n.b.scalar(n.elementType(x), 0), Value(), Ints(n.shape(x))));
}

void shapeOf(OperatorImporter &n) {
  Value x = n.input(0);
  Value dims = createIntVector(n.b.getBuilder(), n.b.getBuilder().getUnknownLoc(), n.shape(x));
  auto type = n.options<tflite::ShapeOptions>().out_type();
  mlir::Type to = elementType(type, n.b.getBuilder().getContext());
  n.setOutput(0, n.cast(dims, to ? to : n.elementType(dims)));
}

template <typename Op, typename Options>
void moveBlocks(OperatorImporter &n) {
  Value x = n.input(0);
  int64_t block = n.options<Options>().block_size();
  if (!n.requireRank(x, 4) || block < 1) {
    return n.fail("its block size must be positive");
  }
  if constexpr (std::is_same_v<Op, DepthToSpaceOp>) {
    n.setOutput(0, n.toChannelsLast(n.create<Op>(n.toChannelsFirst(x), block, false)));
  } else {
    n.setOutput(0, n.toChannelsLast(n.create<Op>(n.toChannelsFirst(x), block)));
  }
}

/// Resizes x to |mode| with coordinates |coord|; without align_corners, coordinates are scaled by the ratio of sizes.
void resize(OperatorImporter &n, ResizeMode mode, ResizeCoord coord, ResizeRound round) {
  Value x = n.input(0);
  Ints size = n.constantInts(1, "the size");
  if (!n.requireRank(x, 4) || size.size() != 2 || size[0] < 1 || size[1] < 1) {
    return n.fail("its size must have two positive entries");
  }
  llvm::ArrayRef<int64_t> in = n.shape(x);
  Ints sizes = {in[0], in[3], size[0], size[1]};
  llvm::SmallVector<double> scales = {1, 1, double(size[0]) / double(in[1]), double(size[1]) / double(in[2])};
  Value y = n.create<ResizeOp>(n.toChannelsFirst(x), sizes, scales, mode, coord, round, llvm::APFloat(-0.75), false,
                               llvm::APFloat(0.0), llvm::ArrayRef<double>(), false);
  n.setOutput(0, n.toChannelsLast(y));
}

void resizeBilinear(OperatorImporter &n) {
  const auto &options = n.options<tflite::ResizeBilinearOptions>();
  resize(n, ResizeMode::linear,
         options.align_corners()        ? ResizeCoord::align_corners
         : options.half_pixel_centers() ? ResizeCoord::half_pixel
                                        : ResizeCoord::asymmetric,
         ResizeRound::floor);
}

void resizeNearest(OperatorImporter &n) {
  const auto &options = n.options<tflite::ResizeNearestNeighborOptions>();
  if (options.align_corners()) {
    if (options.half_pixel_centers()) {
      n.unsupported("align_corners and half_pixel_centers together are not supported");
    }
    return resize(n, ResizeMode::nearest, ResizeCoord::align_corners, ResizeRound::round_prefer_ceil);
  }
  resize(n, ResizeMode::nearest,
         options.half_pixel_centers() ? ResizeCoord::tf_half_pixel_for_nn : ResizeCoord::asymmetric,
         ResizeRound::floor);
}

} // namespace

Value padded(OperatorImporter &n, double value) {
  Value x = n.input(0);
  return n.create<PadOp>(x, padsInput(n, x), PadMode::constant, llvm::APFloat(value));
}

llvm::ArrayRef<HandlerEntry> shapeHandlers() {
  using Code = tflite::BuiltinOperator;
  static const HandlerEntry entries[] = {
      {Code::RESHAPE, reshape},
      {Code::SQUEEZE, squeeze},
      {Code::EXPAND_DIMS, expandDims},
      {Code::TRANSPOSE, transpose},
      {Code::CONCATENATION, concatenation},
      {Code::PACK, pack},
      {Code::UNPACK, unpack},
      {Code::SPLIT, split},
      {Code::SPLIT_V, splitV},
      {Code::PAD, pad},
      {Code::PADV2, pad},
      {Code::MIRROR_PAD, mirrorPad},
      {Code::TILE, tile},
      {Code::BROADCAST_TO, broadcastTo},
      {Code::FILL, fill},
      {Code::ZEROS_LIKE, zerosLike},
      {Code::SHAPE, shapeOf},
      {Code::DEPTH_TO_SPACE, moveBlocks<DepthToSpaceOp, tflite::DepthToSpaceOptions>},
      {Code::SPACE_TO_DEPTH, moveBlocks<SpaceToDepthOp, tflite::SpaceToDepthOptions>},
      {Code::RESIZE_BILINEAR, resizeBilinear},
      {Code::RESIZE_NEAREST_NEIGHBOR, resizeNearest},
      {Code::DENSIFY, densify},
  };
  return entries;
}

} // namespace tessera::top::tflite_import
