//===- LowerConv.cpp - Convolutions of floats and integers ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/Quantized.h"
#include "top_dialect/IR/TopConvOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::device {
namespace {

using Dims = SmallVector<int64_t>;
using Sizes = SmallVector<Dim>;

/// Parameters of a device.conv other than its operands.
struct Geometry {
  Dims strides, pads, dilations;
  int64_t groups;

  size_t spatial() const { return strides.size(); }

  /// Turns a 1-D convolution into a 2-D one over rows of height 1.
  void addRow() {
    strides.insert(strides.begin(), 1);
    dilations.insert(dilations.begin(), 1);
    pads.insert(pads.begin() + pads.size() / 2, 0);
    pads.insert(pads.begin(), 0);
  }
};

Sizes withRow(Shape shape) {
  Sizes result = shape.dims();
  result.insert(result.begin() + 2, Dim(1));
  return result;
}

/// Operands of a convolution, floats or the integers that represent them, and how the result is computed.
struct Source {
  Value x, w, bias;
  bool relu = false;
  double limit = 0;
  Type resultElement;

  /// Set for integers: how the accumulator becomes the result, and the bias per channel in units of the accumulator
  /// (empty: no bias).
  std::optional<ContractionForm> form;
  std::vector<int64_t> integerBias;
  int64_t zero = 0;
  IntegerAttr sumBound;

  /// Set for integer weights of a float x.
  Value scales;
  int64_t group = 0;

  template <typename Op>
  static Source floats(Op op) {
    return {op.getX(),
            op.getW(),
            op.getBias(),
            op.getRelu(),
            op.getReluLimit().convertToDouble(),
            Lowering::element(op.getY()),
            std::nullopt,
            {},
            0,
            {},
            Value(),
            0};
  }

  /// Repeats every channel `count` times in place (`together`), or the sequence of all channels `count` times.
  void repeatChannels(Lowering &lower, int64_t count, bool together = true) {
    if (bias) {
      int64_t channels = Lowering::dims(bias)[0];
      Dims one = together ? Dims{channels, 1} : Dims{1, channels};
      Dims all = together ? Dims{channels, count} : Dims{count, channels};
      bias = lower.reshape(lower.expand(lower.reshape(bias, one), all), {channels * count});
    }
    if (form) {
      form->repeat(count, together);
      std::vector<int64_t> repeated;
      for (size_t i = 0, channels = integerBias.size(); i < channels * size_t(count); ++i) {
        repeated.push_back(integerBias[together ? i / size_t(count) : i % channels]);
      }
      integerBias = repeated;
    }
  }
};

/// Returns the i32 bias for weights w [OC, ...], corrected by the contribution of x's zero point to every sum; null if
/// it is zero.
Value correctedBias(Lowering &lower, const Source &source, Value w) {
  int64_t channels = Lowering::dims(w)[0], steps = numElements(w) / channels;
  if (source.zero == 0 && source.integerBias.empty()) {
    return {};
  }
  std::optional<top::TensorData> data = top::getConstantData(w);
  assert(data && "moves of constant weights are carried out");
  SmallVector<double> values;
  for (int64_t c = 0; c < channels; ++c) {
    int64_t sum = 0;
    for (int8_t weight : data->data<int8_t>().slice(c * steps, steps)) {
      sum += weight;
    }
    values.push_back(static_cast<double>((source.integerBias.empty() ? 0 : source.integerBias[c]) - source.zero * sum));
  }
  return lower.constant(values, lower.rewriter.getI32Type(), {channels}, "integer_bias");
}

/// Pads x [N, C, D...] explicitly by |pads| with |value|, because kernels pad 16-bit integers only with zeros.
Value padded(Lowering &lower, Value x, ArrayRef<int64_t> pads, int64_t value) {
  if (llvm::all_of(pads, [](int64_t pad) { return pad == 0; })) {
    return x;
  }
  Sizes sizes = Lowering::shape(x).dims();
  auto piece = SymbolicPiece::identity(0, sizes);
  for (size_t d = 0; d < pads.size() / 2; ++d) {
    piece.dstOffsets[d + 2] = pads[d];
    sizes[d + 2] += pads[d] + pads[d + pads.size() / 2];
  }
  return lower.copy(x, piece, sizes, static_cast<double>(value));
}

/// Returns the extent of the result along dim |d| of a convolution.
Dim resultExtent(const Geometry &geometry, size_t d, Dim input, Dim kernel) {
  Dim extent = Dim(geometry.dilations[d]) * (kernel - 1) + 1;
  Dim room = input + geometry.pads[d] + geometry.pads[d + geometry.spatial()] - extent;
  return max(floorDiv(room, geometry.strides[d]) + 1, 0);
}

/// Removes from the constant weights |w| the first and last taps of each dim that only meet padding, as in far dilated
/// kernels on small images, and reduces the pads accordingly.
Value dropUnseenTaps(Lowering &lower, Value x, Value w, Geometry &geometry) {
  if (!top::isConstant(w)) {
    return w;
  }
  Dims starts(Lowering::dims(w).size(), 0), sizes(Lowering::dims(w));
  for (size_t d = 0; d < geometry.spatial(); ++d) {
    if (!Lowering::shape(x)[d + 2].isKnown()) {
      continue; // taps may meet elements of larger images
    }
    int64_t input = Lowering::shape(x)[d + 2].value(), kernel = sizes[d + 2], &before = geometry.pads[d],
            &behind = geometry.pads[d + geometry.spatial()], dilation = geometry.dilations[d];
    int64_t reach = (resultExtent(geometry, d, input, kernel).value() - 1) * geometry.strides[d];
    int64_t first = 0, last = kernel - 1;
    // A tap reads the positions from tap * dilation - before to `reach` beyond. Pads must not become negative.
    while (first < last && first * dilation - before + reach < 0 && before >= (first + 1) * dilation) {
      ++first;
    }
    while (last > first && last * dilation - before >= input && behind >= (kernel - last) * dilation) {
      --last;
    }
    before -= first * dilation, behind -= (kernel - 1 - last) * dilation;
    starts[d + 2] = first, sizes[d + 2] = last - first + 1;
    geometry.dilations[d] = first == last ? 1 : dilation;
  }
  return lower.slice(w, starts, sizes, Dims(sizes.size(), 1));
}

/// Builds the convolution; the result has dims [N, OC, O...], `x` and `w` have rank 3 to 5.
Value buildConv(Lowering &lower, Value x, Value w, const Source &source, Geometry geometry) {
  bool oneDim = geometry.spatial() == 1;
  if (oneDim) {
    geometry.addRow();
    x = lower.reshape(x, withRow(x));
    w = lower.reshape(w, withRow(w));
  }
  if (source.zero != 0 && Lowering::element(x).isInteger(16)) {
    x = padded(lower, x, geometry.pads, source.zero);
    llvm::fill(geometry.pads, 0);
  }
  w = dropUnseenTaps(lower, x, w, geometry);
  Sizes dims{Lowering::shape(x)[0], Lowering::shape(w)[0]};
  for (size_t d = 0; d < geometry.spatial(); ++d) {
    dims.push_back(resultExtent(geometry, d, Lowering::shape(x)[d + 2], Lowering::shape(w)[d + 2]));
  }
  Value bias = source.form ? correctedBias(lower, source, w) : source.bias;
  SmallVector<Value> extras;
  if (source.form) {
    Dims broadcast(geometry.spatial() + 1, 1);
    broadcast[0] = dims[1].value();
    extras = source.form->operands(lower, broadcast);
  }
  Builder &builder = lower.rewriter;
  Type element = source.form ? source.form->resultElement : source.resultElement;
  bool hasPads = llvm::any_of(geometry.pads, [](int64_t pad) { return pad != 0; });
  auto conv =
      ConvOp::create(lower.rewriter, lower.loc, tensorType(dims, element), x, w, bias, extras, source.scales,
                     builder.getDenseI64ArrayAttr(geometry.strides), builder.getDenseI64ArrayAttr(geometry.pads),
                     builder.getDenseI64ArrayAttr(geometry.dilations), geometry.groups, /*packing=*/PackingInterface(),
                     hasPads ? source.zero : 0, source.sumBound, source.group);
  if (source.form) {
    lower.setEpilogue(conv, [&](OpBuilder &b, Location loc, ValueRange values) {
      return source.form->emit(b, loc, values[0], values.drop_front());
    });
  } else if (source.relu) {
    lower.setEpilogue(
        conv, [&](OpBuilder &b, Location loc, ValueRange values) { return emitRelu(b, loc, values[0], source.limit); });
  } else {
    lower.setEpilogue(conv, nullptr);
  }
  if (!oneDim) {
    return conv.getY();
  }
  dims.erase(dims.begin() + 2);
  return lower.reshape(conv.getY(), dims);
}

Value lowerConv(Lowering &lower, top::ConvOp op, const Source &source) {
  Geometry geometry{Dims(op.getStrides()), Dims(op.getPads()), Dims(op.getDilations()),
                    static_cast<int64_t>(op.getGroups())};
  return buildConv(lower, source.x, source.w, source, geometry);
}

struct LowerConvOp : OpRewritePattern<top::ConvOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::ConvOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    return lower.replace(lowerConv(lower, op, Source::floats(op)));
  }
};

/// Lowers a transposed convolution without multiplying zeros. Result o is the sum of tap r + s j times x[Q - j], with Q
/// and r the quotient and remainder of o + pad by the stride s. Each r, called a phase, is a convolution of every s-th
/// tap over x itself. All phases are channels of one convolution; the results of the phases are then interleaved.
class TransposedPhases {
public:
  TransposedPhases(Lowering &lower, top::ConvTransposeOp op, const Source &source)
      : lowering(lower), op(op), source(source), strides(op.getStrides()), groups(op.getGroups()) {
    int64_t spread = 0; // number of strided dims
    bool areEqual = true;
    for (auto [stride, size] : llvm::zip_equal(strides, Lowering::dims(op.getW()).drop_front(2))) {
      phases *= stride, spread += stride > 1, areEqual &= size % stride == 0;
      taps.push_back(llvm::divideCeil(size, stride));
    }
    asRows = (spread == 1 && areEqual) || phases > kMostPieces;
  }

  /// Returns true if every phase has a tap and the number of phases is acceptable.
  static bool fits(top::ConvTransposeOp op) {
    constexpr int64_t kMostPhases = 4096; // for constant weights, which are rearranged at compile time
    int64_t most = top::isConstant(op.getW()) ? kMostPhases : kMostPieces, phases = 1;
    for (auto [stride, size] : llvm::zip_equal(op.getStrides(), Lowering::dims(op.getW()).drop_front(2))) {
      phases *= stride <= size ? stride : most + 1;
    }
    return llvm::all_equal(op.getDilations()) && op.getDilations()[0] == 1 && phases > 1 && phases <= most &&
           llvm::all_of(llvm::seq<size_t>(0, op.getStrides().size()),
                        [&](size_t d) { return (quotients(op, d) - Shape(op.getX())[d + 2]).isKnown(); });
  }

  Value lower() {
    Geometry geometry{Dims(strides.size(), 1), Dims(2 * strides.size()), Dims(strides.size(), 1), groups};
    for (size_t d = 0; d < strides.size(); ++d) {
      int64_t pad = op.getPads()[d];
      int64_t behind = (quotients(op, d) - Lowering::shape(op.getX())[d + 2]).value();
      // A convolution cannot have negative padding: it computes results that are then dropped.
      first.push_back(std::min(pad / strides[d], taps[d] - 1));
      geometry.pads[d] = taps[d] - 1 - first[d];
      geometry.pads[d + strides.size()] = std::max<int64_t>(behind + (strides[d] - 1 + pad) / strides[d], 0);
    }
    source.repeatChannels(lowering, phases, !phasesOutside());
    Value y = buildConv(lowering, source.x, weights(), source, geometry);
    y = asRows ? turned(y) : interleaved(y);
    Shape result = op.getY();
    return lowering.slice(y, Dims(result.rank(), 0), result, Dims(result.rank(), 1));
  }

private:
  static constexpr int64_t kMostPieces = 64; ///< for a copy at run time

  /// Returns true if channels are ordered by phase, then by channel. The order is reversed to keep groups together, or
  /// if the phases of a channel are transposed.
  bool phasesOutside() const { return groups == 1 && !asRows; }
  /// Returns the number of result elements along a dim, with all phases of one quotient counted once.
  static Dim quotients(top::ConvTransposeOp op, size_t d) {
    return ceilDiv(Shape(op.getY())[d + 2], op.getStrides()[d]);
  }

  Dims phaseOf(int64_t number) const {
    Dims phase(strides.size());
    for (size_t d = strides.size(); d-- > 0; number /= strides[d]) {
      phase[d] = number % strides[d];
    }
    return phase;
  }

  /// Limit for the growth of the weights: a phase has at most twice the average number of taps, in each of three dims.
  static constexpr int64_t kMostGrowth = 8;

  /// Rearranges the weights [g, C/g, OC/g, K] to [g, S, OC/g, C/g, J], or with OC/g before S. The taps of a phase are
  /// reversed and preceded by zeros.
  Value weights() {
    ArrayRef<int64_t> wDims = Lowering::dims(op.getW()), kernel = wDims.drop_front(2);
    size_t spatial = strides.size(), phaseAt = phasesOutside() ? 1 : 2, channelAt = phasesOutside() ? 1 + spatial : 1;
    Dims split{groups, wDims[0] / groups, wDims[1]}, dims(3 + spatial, 1);
    llvm::append_range(split, kernel);
    dims[0] = groups, dims[channelAt] = wDims[1], dims[2 + spatial] = wDims[0] / groups;
    llvm::copy(strides, dims.begin() + phaseAt);
    llvm::append_range(dims, taps);
    std::vector<SymbolicPiece> pieces;
    for (int64_t number = 0; number < phases; ++number) {
      Dims phase = phaseOf(number);
      auto piece = SymbolicPiece::identity(0, Shape(dims).dims());
      piece.srcDims.assign(dims.size(), -1);
      piece.srcOffsets.assign(split.size(), 0);
      piece.srcDims[0] = 0, piece.srcDims[channelAt] = 2, piece.srcDims[2 + spatial] = 1;
      for (size_t d = 0; d < spatial; ++d) {
        int64_t count = phase[d] < kernel[d] ? llvm::divideCeil(kernel[d] - phase[d], strides[d]) : 0;
        piece.sizes[phaseAt + d] = 1, piece.dstOffsets[phaseAt + d] = phase[d];
        piece.srcDims[3 + spatial + d] = int64_t(3 + d), piece.sizes[3 + spatial + d] = count;
        piece.srcSteps[3 + spatial + d] = -strides[d], piece.dstOffsets[3 + spatial + d] = taps[d] - count;
        piece.srcOffsets[3 + d] = phase[d] + strides[d] * (count - 1);
      }
      if (llvm::all_of(piece.sizes, [](Dim size) { return !size.is(0); })) {
        pieces.push_back(piece);
      }
    }
    Dims flat{groups * wDims[1] * phases, wDims[0] / groups};
    llvm::append_range(flat, taps);
    return lowering.reshape(lowering.copy(lowering.reshape(source.w, split), pieces, dims, 0.0, kMostGrowth), flat);
  }

  /// Moves the phases of |y| to their positions with one strided region per phase.
  Value interleaved(Value y) {
    size_t spatial = strides.size();
    Shape whole = op.getY();
    Sizes dims{whole[0], whole[1]}, sizes = dims;
    for (size_t d = 0; d < spatial; ++d) {
      dims.push_back(quotients(op, d) * strides[d]), sizes.push_back(quotients(op, d));
    }
    std::vector<SymbolicPiece> pieces;
    for (int64_t number = 0; number < phases; ++number) {
      auto piece = SymbolicPiece::identity(0, sizes);
      Dims at = phaseOf(number); // in the result
      int64_t phase = 0;
      for (size_t d = 0; d < spatial; ++d) {
        int64_t padded = at[d] + op.getPads()[d];
        phase = phase * strides[d] + padded % strides[d];
        piece.srcOffsets[d + 2] = padded / strides[d] - first[d];
        piece.dstOffsets[d + 2] = at[d], piece.dstSteps[d + 2] = strides[d];
      }
      piece.srcOffsets[1] = phasesOutside() ? dims[1] * phase : Dim(phase);
      piece.srcSteps[1] = phasesOutside() ? 1 : phases;
      pieces.push_back(piece);
    }
    return lowering.copy(y, pieces, dims);
  }

  /// Moves the phases of |y| by a transposition: the phases of a channel are the rows of a matrix whose columns are
  /// result elements. The pads split each dim's phases in two; those after the split begin one quotient later.
  Value turned(Value y) {
    size_t spatial = strides.size();
    Shape yDims = y;
    Sizes split{yDims[0], yDims[1].value() / phases}, dims = split, whole = split;
    llvm::append_range(split, strides);
    llvm::append_range(split, yDims.dropFront(2).dims());
    for (size_t d = 0; d < spatial; ++d) {
      dims.append({quotients(op, d), Dim(strides[d])}), whole.push_back(quotients(op, d) * strides[d]);
    }
    std::vector<SymbolicPiece> pieces;
    for (int64_t part = 0; part < int64_t(1) << spatial; ++part) {
      auto piece = SymbolicPiece::identity(0, dims);
      for (size_t d = 0; d < spatial; ++d) {
        int64_t pad = op.getPads()[d], behind = part >> d & 1, cut = strides[d] - pad % strides[d];
        piece.srcDims[2 + 2 * d] = int64_t(2 + spatial + d), piece.srcDims[3 + 2 * d] = int64_t(2 + d);
        piece.dstOffsets[3 + 2 * d] = behind ? cut : 0;
        piece.sizes[3 + 2 * d] = behind ? strides[d] - cut : cut;
        piece.srcOffsets[2 + d] = behind ? 0 : pad % strides[d];
        piece.srcOffsets[2 + spatial + d] = pad / strides[d] + behind - first[d];
      }
      if (llvm::all_of(piece.sizes, [](Dim size) { return !size.is(0); })) {
        pieces.push_back(piece);
      }
    }
    return lowering.reshape(lowering.copy(lowering.reshape(y, split), pieces, dims), whole);
  }

  Lowering &lowering;
  top::ConvTransposeOp op;
  Source source;
  ArrayRef<int64_t> strides;
  int64_t groups, phases = 1;
  bool asRows; ///< phases are transposed: fast for any number, but later passes cannot separate them
  Dims taps;   ///< per phase
  Dims first;  ///< quotient at which the convolution begins, per dim
};

/// Lowers a transposed convolution, y[o] = sum of x[d] w[k] over d stride + k dilation = o + pad.
class TransposedConv {
public:
  static Value lower(Lowering &lower, top::ConvTransposeOp op, const Source &source) {
    return tilesExactly(op)             ? lowerTiles(lower, op, source)
           : TransposedPhases::fits(op) ? TransposedPhases(lower, op, source).lower()
                                        : lowerSpread(lower, op, source);
  }

private:
  /// Returns true if every result element is reached by exactly one tap: the kernel tiles the result.
  static bool tilesExactly(top::ConvTransposeOp op) {
    auto zero = [](int64_t value) { return value == 0; };
    auto one = [](int64_t value) { return value == 1; };
    return op.getStrides() == Lowering::dims(op.getW()).drop_front(2) && llvm::all_of(op.getPads(), zero) &&
           llvm::all_of(op.getOutputPadding(), zero) && llvm::all_of(op.getDilations(), one);
  }

  static Value convolve(Lowering &lower, top::ConvTransposeOp op, Value x, Value w, const Source &source, Dims pads) {
    Geometry geometry{Dims(pads.size() / 2, 1), pads, Dims(pads.size() / 2, 1), static_cast<int64_t>(op.getGroups())};
    for (size_t d = 0; d < geometry.spatial(); ++d) {
      bool single = Lowering::dims(w)[d + 2] == 1;
      geometry.dilations[d] = single ? 1 : op.getDilations()[d];
    }
    return buildConv(lower, x, w, source, geometry);
  }

  /// Lowers to a 1x1 convolution with OC * K channels, whose K are then moved to their positions.
  static Value lowerTiles(Lowering &lower, top::ConvTransposeOp op, Source source) {
    Shape xDims = op.getX();
    ArrayRef<int64_t> wDims = Lowering::dims(op.getW());
    int64_t groups = op.getGroups(), channels = wDims[0], outPerGroup = wDims[1];
    ArrayRef<int64_t> kernel = wDims.drop_front(2);
    size_t spatial = kernel.size();
    int64_t taps = 1;
    for (int64_t k : kernel) {
      taps *= k;
    }
    // [g, C/g, OC/g, K] -> [g, OC/g, K, C/g]
    Value w = lower.reshape(source.w, {groups, channels / groups, outPerGroup, taps});
    w = lower.transpose(w, {0, 2, 3, 1});
    Dims flat{groups * outPerGroup * taps, channels / groups};
    flat.append(spatial, 1);
    w = lower.reshape(w, flat);
    source.repeatChannels(lower, taps);
    Value y = convolve(lower, op, source.x, w, source, Dims(2 * spatial, 0));
    // [N, OC, K..., D...] -> [N, OC, D, K, D, K...]
    Sizes split{xDims[0], groups * outPerGroup};
    llvm::append_range(split, kernel);
    llvm::append_range(split, xDims.dropFront(2).dims());
    Dims perm{0, 1};
    for (size_t d = 0; d < spatial; ++d) {
      perm.append({static_cast<int64_t>(2 + spatial + d), static_cast<int64_t>(2 + d)});
    }
    return lower.reshape(lower.transpose(lower.reshape(y, split), perm), Lowering::shape(op.getY()));
  }

  /// Lowers to a convolution with the flipped kernel over x, which is spread out by the strides.
  static Value lowerSpread(Lowering &lower, top::ConvTransposeOp op, const Source &source) {
    ArrayRef<int64_t> kernel = Lowering::dims(op.getW()).drop_front(2);
    size_t spatial = kernel.size();
    Shape given = op.getX();
    Dims pads(2 * spatial), low(spatial);
    Sizes sizes{given[0], given[1]};
    for (size_t d = 0; d < spatial; ++d) {
      int64_t reach = op.getDilations()[d] * (kernel[d] - 1);
      int64_t begin = reach - op.getPads()[d];
      int64_t end = reach - op.getPads()[d + spatial] + op.getOutputPadding()[d];
      Dim spread = (given[d + 2] - 1) * op.getStrides()[d] + 1;
      // A convolution cannot have negative padding: the spread copy is cropped instead.
      low[d] = std::min<int64_t>(begin, 0);
      sizes.push_back(spread + low[d] + std::min<int64_t>(end, 0));
      pads[d] = std::max<int64_t>(begin, 0);
      pads[d + spatial] = std::max<int64_t>(end, 0);
    }
    Value x = spread(lower, source.x, op.getStrides(), low, sizes, source.zero);
    return convolve(lower, op, x, flipped(lower, op, source.w), source, pads);
  }

  /// Spreads x out: result index low + d * stride is x index d, with `zero` between; positions outside the result are
  /// cropped.
  static Value spread(Lowering &lower, Value x, ArrayRef<int64_t> strides, ArrayRef<int64_t> low, ArrayRef<Dim> sizes,
                      int64_t zero) {
    if (sameSizes(tensorType(sizes, Lowering::element(x)), x)) {
      return x;
    }
    auto piece = SymbolicPiece::identity(0, Lowering::shape(x).dims());
    for (size_t d = 0; d < strides.size(); ++d) {
      int64_t first = llvm::divideCeil(-low[d], strides[d]);
      Dim last = min(floorDiv(sizes[d + 2] - 1 - low[d], strides[d]), Lowering::shape(x)[d + 2] - 1);
      piece.srcOffsets[d + 2] = first;
      piece.dstOffsets[d + 2] = first * strides[d] + low[d];
      piece.dstSteps[d + 2] = strides[d];
      piece.sizes[d + 2] = last - first + 1;
    }
    bool nothing = llvm::any_of(piece.sizes, [](Dim size) { return maxOf(size) < 1; });
    return lower.copy(x, nothing ? ArrayRef<SymbolicPiece>() : ArrayRef<SymbolicPiece>(piece), sizes,
                      static_cast<double>(zero));
  }

  /// Flips the kernel: [g C/g, OC/g, K] -> [g OC/g, C/g, K reversed].
  static Value flipped(Lowering &lower, top::ConvTransposeOp op, Value w) {
    ArrayRef<int64_t> wDims = Lowering::dims(op.getW());
    int64_t groups = op.getGroups(), perGroup = wDims[0] / groups;
    Dims split{groups, perGroup, wDims[1]}, moved{groups, wDims[1], perGroup};
    Dims flat{groups * wDims[1], perGroup};
    for (Dims *dims : {&split, &moved, &flat}) {
      llvm::append_range(*dims, wDims.drop_front(2));
    }
    auto piece = SymbolicPiece::identity(0, Shape(moved).dims());
    std::swap(piece.srcDims[1], piece.srcDims[2]);
    for (size_t d = 3; d < moved.size(); ++d) {
      piece.srcOffsets[d] = moved[d] - 1;
      piece.srcSteps[d] = -1;
    }
    return lower.reshape(lower.copy(lower.reshape(w, split), piece, moved), flat);
  }
};

struct LowerConvTransposeOp : OpRewritePattern<top::ConvTransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::ConvTransposeOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    return lower.replace(TransposedConv::lower(lower, op, Source::floats(op)));
  }
};

/// Lowers a convolution whose operands are dequantised integers to integers; dim |axis| of the weights holds output
/// channels.
template <typename Op>
void lowerIntegers(PatternRewriter &rewriter, Op op, int64_t axis, Requantisation requantisation,
                   llvm::function_ref<Value(Lowering &, const Source &)> build) {
  std::optional<QuantizedTensor> x = matchQuantized(op.getX());
  std::optional<QuantizedWeights> w = x ? matchWeights(op.getW(), axis) : std::nullopt;
  if (!w) {
    return;
  }
  ArrayRef<int64_t> wDims = Shape(w->type).values();
  int64_t groups = op.getGroups(), channels = Lowering::shape(op.getY())[1].value();
  SmallVector<double> scales;
  for (int64_t c = 0; c < channels; ++c) {
    // The weights of a transposed convolution have the channels of one group only.
    scales.push_back(x->scaling.scale * w->scale(c % wDims[axis]));
  }
  std::optional<std::vector<int64_t>> bias = std::vector<int64_t>();
  if (op.getBias()) {
    bias = matchBias(op.getBias(), scales);
  }
  int64_t steps = numElements(w->type) / wDims[axis] / (axis == 0 ? 1 : groups);
  if (!bias) {
    return;
  }
  SumProof proof(x->scaling, *w, steps, *bias);
  if (!proof.holds) {
    return;
  }
  ContractionTail tail(op, op.getRelu(), op.getReluLimit().convertToDouble());
  rewriter.setInsertionPoint(tail.last);
  Lowering lower(rewriter, tail.last);
  lower.loc = op.getLoc();
  Source source;
  source.x = x->values;
  source.w = top::createConstant(rewriter, lower.loc, w->type, std::move(w->values), "integer_weights");
  source.form.emplace(tail, scales, requantisation);
  source.integerBias = std::move(*bias);
  source.zero = x->scaling.zero;
  source.sumBound = proof.attribute(rewriter);
  replaceTail(lower, tail, build(lower, source));
}

} // namespace

void populateConvPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerConvOp, LowerConvTransposeOp>(patterns.getContext());
}

void lowerScaledConv(PatternRewriter &rewriter, top::ConvOp op) {
  rewriter.setInsertionPoint(op);
  Lowering lower(rewriter, op);
  std::optional<ScaledWeights> weights = matchScaledWeights(lower, op.getW(), true, false);
  if (!weights) {
    return;
  }
  Source source = Source::floats(op);
  source.w = weights->values, source.scales = weights->scales, source.group = weights->group;
  (void)lower.replace(lowerConv(lower, op, source));
}

void lowerIntegerConv(PatternRewriter &rewriter, Operation *op, Requantisation requantisation) {
  if (auto conv = dyn_cast<top::ConvOp>(op)) {
    lowerIntegers(rewriter, conv, 0, requantisation,
                  [&](Lowering &lower, const Source &source) { return lowerConv(lower, conv, source); });
  } else if (auto conv = dyn_cast<top::ConvTransposeOp>(op)) {
    lowerIntegers(rewriter, conv, 1, requantisation,
                  [&](Lowering &lower, const Source &source) { return TransposedConv::lower(lower, conv, source); });
  }
}

} // namespace tessera::device
