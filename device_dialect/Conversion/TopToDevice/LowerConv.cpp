//===- LowerConv.cpp - Convolutions ---------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/Lowering.h"
#include "llvm/Support/MathExtras.h"
#include "top_dialect/IR/TopConvOps.h"

using namespace mlir;

namespace tessera::device {
namespace {

using Dims = SmallVector<int64_t>;

/// Everything a device.conv is told besides its operands.
struct Geometry {
  Dims strides, pads, dilations;
  int64_t groups;

  size_t spatial() const { return strides.size(); }

  /// A 1-D convolution is a 2-D one over rows of height 1.
  void addRow() {
    strides.insert(strides.begin(), 1);
    dilations.insert(dilations.begin(), 1);
    pads.insert(pads.begin() + pads.size() / 2, 0);
    pads.insert(pads.begin(), 0);
  }
};

Dims withRow(ArrayRef<int64_t> dims) {
  Dims result(dims);
  result.insert(result.begin() + 2, 1);
  return result;
}

/// The convolution's result, of dims [N, OC, O...]; `x` and `w` have rank 3 to 5.
Value buildConv(Lowering &lower, Value x, Value w, Value bias, Geometry geometry, bool relu, double limit,
                Type resultElement) {
  bool oneDim = geometry.spatial() == 1;
  if (oneDim) {
    geometry.addRow();
    x = lower.reshape(x, withRow(Lowering::dims(x)));
    w = lower.reshape(w, withRow(Lowering::dims(w)));
  }
  Dims dims{Lowering::dims(x)[0], Lowering::dims(w)[0]};
  for (size_t d = 0; d < geometry.spatial(); ++d) {
    int64_t extent = geometry.dilations[d] * (Lowering::dims(w)[d + 2] - 1) + 1;
    int64_t padded = Lowering::dims(x)[d + 2] + geometry.pads[d] + geometry.pads[d + geometry.spatial()];
    dims.push_back((padded - extent) / geometry.strides[d] + 1);
  }
  Builder &builder = lower.rewriter;
  auto conv = ConvOp::create(
      lower.rewriter, lower.loc, RankedTensorType::get(dims, resultElement), x, w, bias, ValueRange(),
      builder.getDenseI64ArrayAttr(geometry.strides), builder.getDenseI64ArrayAttr(geometry.pads),
      builder.getDenseI64ArrayAttr(geometry.dilations), geometry.groups, ConvAlgorithm::generic,
      /*packed=*/false, DenseI64ArrayAttr(), IntegerAttr());
  if (relu) {
    lower.setEpilogue(conv, [&](OpBuilder &b, Location loc, ValueRange values) {
      return emitRelu(b, loc, values[0], limit);
    });
  } else {
    lower.setEpilogue(conv, nullptr);
  }
  if (!oneDim) {
    return conv.getY();
  }
  dims.erase(dims.begin() + 2);
  return lower.reshape(conv.getY(), dims);
}

struct LowerConvOp : OpRewritePattern<top::ConvOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::ConvOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    Geometry geometry{Dims(op.getStrides()), Dims(op.getPads()), Dims(op.getDilations()),
                      static_cast<int64_t>(op.getGroups())};
    return lower.replace(buildConv(lower, op.getX(), op.getW(), op.getBias(), geometry, op.getRelu(),
                                   op.getReluLimit().convertToDouble(), Lowering::element(op.getY())));
  }
};

/// Transposed convolution y[o] = sum of x[d] w[k] over d stride + k dilation = o + pad.
struct LowerConvTransposeOp : OpRewritePattern<top::ConvTransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(top::ConvTransposeOp op, PatternRewriter &rewriter) const override {
    Lowering lower(rewriter, op);
    return lower.replace(tilesExactly(op) ? lowerTiles(lower, op) : lowerSpread(lower, op));
  }

private:
  /// Every output element gets exactly one tap: the kernel tiles the result.
  static bool tilesExactly(top::ConvTransposeOp op) {
    auto zero = [](int64_t value) { return value == 0; };
    auto one = [](int64_t value) { return value == 1; };
    return op.getStrides() == Lowering::dims(op.getW()).drop_front(2) && llvm::all_of(op.getPads(), zero) &&
           llvm::all_of(op.getOutputPadding(), zero) && llvm::all_of(op.getDilations(), one);
  }

  static Value convolve(Lowering &lower, top::ConvTransposeOp op, Value x, Value w, Value bias, Dims pads) {
    Geometry geometry{Dims(pads.size() / 2, 1), pads, Dims(pads.size() / 2, 1),
                      static_cast<int64_t>(op.getGroups())};
    for (size_t d = 0; d < geometry.spatial(); ++d) {
      bool single = Lowering::dims(w)[d + 2] == 1;
      geometry.dilations[d] = single ? 1 : op.getDilations()[d];
    }
    return buildConv(lower, x, w, bias, geometry, op.getRelu(), op.getReluLimit().convertToDouble(),
                     Lowering::element(op.getY()));
  }

  /// A 1x1 convolution to OC * K channels, whose K are then moved into the positions.
  static Value lowerTiles(Lowering &lower, top::ConvTransposeOp op) {
    ArrayRef<int64_t> wDims = Lowering::dims(op.getW()), xDims = Lowering::dims(op.getX());
    int64_t groups = op.getGroups(), channels = wDims[0], outPerGroup = wDims[1];
    ArrayRef<int64_t> kernel = wDims.drop_front(2);
    size_t spatial = kernel.size();
    int64_t taps = 1;
    for (int64_t k : kernel) {
      taps *= k;
    }
    // [g, C/g, OC/g, K] -> [g, OC/g, K, C/g]
    Value w = lower.reshape(op.getW(), {groups, channels / groups, outPerGroup, taps});
    w = lower.transpose(w, {0, 2, 3, 1});
    Dims flat{groups * outPerGroup * taps, channels / groups};
    flat.append(spatial, 1);
    w = lower.reshape(w, flat);
    Value bias = op.getBias();
    if (bias) {
      int64_t oc = groups * outPerGroup;
      bias = lower.reshape(lower.expand(lower.reshape(bias, {oc, 1}), {oc, taps}), {oc * taps});
    }
    Value y = convolve(lower, op, op.getX(), w, bias, Dims(2 * spatial, 0));
    // [N, OC, K..., D...] -> [N, OC, D, K, D, K...]
    Dims split{xDims[0], groups * outPerGroup};
    llvm::append_range(split, kernel);
    llvm::append_range(split, xDims.drop_front(2));
    Dims perm{0, 1};
    for (size_t d = 0; d < spatial; ++d) {
      perm.append({static_cast<int64_t>(2 + spatial + d), static_cast<int64_t>(2 + d)});
    }
    return lower.reshape(lower.transpose(lower.reshape(y, split), perm), Lowering::dims(op.getY()));
  }

  /// A convolution with the flipped kernel over x spread out by the strides.
  static Value lowerSpread(Lowering &lower, top::ConvTransposeOp op) {
    ArrayRef<int64_t> kernel = Lowering::dims(op.getW()).drop_front(2);
    size_t spatial = kernel.size();
    Dims pads(2 * spatial), low(spatial), sizes(Lowering::dims(op.getX()).take_front(2));
    for (size_t d = 0; d < spatial; ++d) {
      int64_t reach = op.getDilations()[d] * (kernel[d] - 1);
      int64_t begin = reach - op.getPads()[d];
      int64_t end = reach - op.getPads()[d + spatial] + op.getOutputPadding()[d];
      int64_t spread = (Lowering::dims(op.getX())[d + 2] - 1) * op.getStrides()[d] + 1;
      // A convolution cannot pad by less than nothing: what is cut goes into the spread copy.
      low[d] = std::min<int64_t>(begin, 0);
      sizes.push_back(spread + low[d] + std::min<int64_t>(end, 0));
      pads[d] = std::max<int64_t>(begin, 0);
      pads[d + spatial] = std::max<int64_t>(end, 0);
    }
    Value x = spread(lower, op.getX(), op.getStrides(), low, sizes);
    return convolve(lower, op, x, flipped(lower, op), op.getBias(), pads);
  }

  /// Result index low + d * stride = x index d, zeros between; what falls outside is cut.
  static Value spread(Lowering &lower, Value x, ArrayRef<int64_t> strides, ArrayRef<int64_t> low,
                      ArrayRef<int64_t> sizes) {
    if (sizes == Lowering::dims(x)) {
      return x;
    }
    Piece piece = Piece::identity(0, Lowering::dims(x));
    for (size_t d = 0; d < strides.size(); ++d) {
      int64_t first = llvm::divideCeil(-low[d], strides[d]);
      int64_t last = std::min((sizes[d + 2] - 1 - low[d]) / strides[d], Lowering::dims(x)[d + 2] - 1);
      piece.srcOffsets[d + 2] = first;
      piece.dstOffsets[d + 2] = first * strides[d] + low[d];
      piece.dstSteps[d + 2] = strides[d];
      piece.sizes[d + 2] = last - first + 1;
    }
    bool nothing = llvm::any_of(piece.sizes, [](int64_t size) { return size < 1; });
    return lower.copy(x, nothing ? ArrayRef<Piece>() : ArrayRef<Piece>(piece), sizes, 0.0);
  }

  /// [g C/g, OC/g, K] -> [g OC/g, C/g, K reversed].
  static Value flipped(Lowering &lower, top::ConvTransposeOp op) {
    ArrayRef<int64_t> wDims = Lowering::dims(op.getW());
    int64_t groups = op.getGroups(), perGroup = wDims[0] / groups;
    Dims split{groups, perGroup, wDims[1]}, moved{groups, wDims[1], perGroup};
    Dims flat{groups * wDims[1], perGroup};
    for (Dims *dims : {&split, &moved, &flat}) {
      llvm::append_range(*dims, wDims.drop_front(2));
    }
    Piece piece = Piece::identity(0, moved);
    std::swap(piece.srcDims[1], piece.srcDims[2]);
    for (size_t d = 3; d < moved.size(); ++d) {
      piece.srcOffsets[d] = moved[d] - 1;
      piece.srcSteps[d] = -1;
    }
    return lower.reshape(lower.copy(lower.reshape(op.getW(), split), piece, moved), flat);
  }
};

} // namespace

void populateConvPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerConvOp, LowerConvTransposeOp>(patterns.getContext());
}

} // namespace tessera::device
