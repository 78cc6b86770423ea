//===- FlattenVolumes.cpp - Rewrites 3-D convolutions and pools as 2-D ones --===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Transforms/MoveBuilder.h"
#include "codegen/X86/Transforms/Passes.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/WeightLifetime.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/MathExtras.h"

namespace tessera::x86 {
#define GEN_PASS_DEF_FLATTENVOLUMESPASS
#include "codegen/X86/Transforms/Passes.h.inc"
} // namespace tessera::x86

using namespace mlir;
using tessera::device::Piece;

namespace tessera::x86 {
namespace {

using Dims = SmallVector<int64_t>;

bool isAll(ArrayRef<int64_t> values, int64_t wanted) {
  return llvm::all_of(values, [=](int64_t value) { return value == wanted; });
}

/// The dims of a volume [N, C, D, H, W] in the 2-D op that replaces an op on it.
enum class View {
  Frames,  ///< [N * D, C, H, W]
  Columns, ///< [N, C, D, H * W]
};

/// Builds the ops that replace one op on volumes [N, C, D, H, W].
class Builder2d : public MoveBuilder {
public:
  using MoveBuilder::MoveBuilder;

  /// Returns |x| with dims |first| and |first| + 1 swapped.
  Value swapped(Value x, size_t first) {
    Dims dims(Shape(x).values());
    std::swap(dims[first], dims[first + 1]);
    if (dims[first] == 1 || dims[first + 1] == 1) {
      return reshape(x, dims);
    }
    Piece piece = Piece::identity(0, dims);
    std::swap(piece.srcDims[first], piece.srcDims[first + 1]);
    return copy(x, piece, dims);
  }

  /// Returns the dims of a volume of dims |d| in |view|.
  static Dims dimsOf(ArrayRef<int64_t> d, View view) {
    return view == View::Columns ? Dims{d[0], d[1], d[2], d[3] * d[4]} : Dims{d[0] * d[2], d[1], d[3], d[4]};
  }

  /// Returns volume |x| in |view|.
  Value viewed(Value x, View view) {
    return reshape(view == View::Columns ? x : swapped(x, 1), dimsOf(Shape(x).values(), view));
  }

  /// Returns |y|, which is in |view|, as a volume of dims |d|.
  Value volume(Value y, View view, ArrayRef<int64_t> d) {
    return view == View::Columns ? reshape(y, d) : swapped(reshape(y, {d[0], d[2], d[1], d[3], d[4]}), 1);
  }

  /// Returns true if viewedExtras() supports all of the epilogue operands |extras|.
  static bool knowsExtras(OperandRange extras, ArrayRef<int64_t> y) {
    return llvm::all_of(extras, [&](Value extra) { return sameSizes(extra, y) || isByChannel(extra); });
  }

  SmallVector<Value> viewedExtras(OperandRange extras, View view) {
    SmallVector<Value> views;
    for (Value extra : extras) {
      bool byChannel = isByChannel(extra);
      views.push_back(byChannel ? reshape(extra, {1, numElements(extra), 1, 1}) : viewed(extra, view));
    }
    return views;
  }

private:
  /// Returns true if |extra| holds one value per channel of a volume, or a single value.
  static bool isByChannel(Value extra) {
    ArrayRef<int64_t> dims = Shape(extra).values();
    bool spatial = dims.size() >= 4 && isAll(dims.take_back(3), 1) && (dims.size() == 4 || dims[0] == 1);
    return numElements(extra) == 1 || spatial;
  }
};

/// Rewrites one convolution. The taps along the depth become input channels of a frame of the result; or, if the kernel
/// has a single row and column, the depth becomes the height.
class FlatConv {
public:
  explicit FlatConv(device::ConvOp conv)
      : conv(conv), build(conv), x(Shape(conv.getX()).values()), w(Shape(conv.getW()).values()),
        y(Shape(conv.getY()).values()), groups(static_cast<int64_t>(conv.getGroups())) {}

  bool canReplace() {
    bool depthwise = groups > 1 && w[1] == 1 && w[0] == groups && w[2] > 1;
    // Scales of several groups of input channels would have to be reordered with the channels.
    bool scaled = conv.getScales() && w[2] > 1 && !Shape(conv.getScales())[0].is(1);
    return !conv.getPacking() && top::isConstant(conv.getW()) && !depthwise && !scaled &&
           Builder2d::knowsExtras(conv.getExtras(), y);
  }

  void replace() {
    ArrayRef<int64_t> strides = conv.getStrides(), pads = conv.getPads(), dilations = conv.getDilations();
    bool columns = isAll(ArrayRef(w).drop_front(3), 1) && isAll(strides.drop_front(), 1) &&
                   isAll(pads.slice(1, 2), 0) && isAll(pads.slice(4, 2), 0);
    View view = columns ? View::Columns : View::Frames;
    Dims stride(strides.drop_front()), dilation(dilations.drop_front()), pad{pads[1], pads[2], pads[4], pads[5]};
    if (columns) {
      stride = {strides[0], 1}, dilation = {dilations[0], 1}, pad = {pads[0], 0, pads[3], 0};
    }
    Value image = columns ? build.viewed(conv.getX(), view) : windows();
    Value weights =
        columns ? weightsAs({w[0], w[1], w[2], 1}, false) : weightsAs({w[0], w[2] * w[1], w[3], w[4]}, true);
    OpBuilder &b = build.builder;
    auto type = RankedTensorType::get(Builder2d::dimsOf(y, view), typeOf(conv.getY()).getElementType());
    int64_t group = conv.getScales() && !columns && w[2] > 1 ? w[1] * w[2] : int64_t(conv.getWeightGroup());
    auto flat = device::ConvOp::create(
        b, conv.getLoc(), type, image, weights, conv.getBias(), build.viewedExtras(conv.getExtras(), view),
        conv.getScales(), b.getDenseI64ArrayAttr(stride), b.getDenseI64ArrayAttr(pad), b.getDenseI64ArrayAttr(dilation),
        groups, device::PackingInterface(), conv.getPadValue(), conv.getSumBoundAttr(), group);
    flat.getEpilogue().takeBody(conv.getEpilogue());
    build.replaceResult(conv, build.volume(flat.getY(), view, y));
    Value logical = conv.getW();
    conv.erase();
    top::releaseWeight(logical);
    if (logical.use_empty()) {
      logical.getDefiningOp()->erase();
    }
  }

private:
  /// Returns [N * OD, G * KD * C / G, H, W]: for each result along the depth, the frames of its taps, zero outside.
  Value windows() {
    int64_t taps = w[2], stride = conv.getStrides()[0], pad = conv.getPads()[0], dilation = conv.getDilations()[0];
    if (taps == 1 && stride == 1 && x[2] == y[2]) {
      return build.viewed(conv.getX(), View::Frames);
    }
    Dims source{x[0], groups, x[1] / groups, x[2], x[3], x[4]};
    Dims dims{x[0], y[2], groups, taps, x[1] / groups, x[3], x[4]}, flat{x[0] * y[2], taps * x[1], x[3], x[4]};
    std::vector<Piece> pieces;
    int64_t covered = 0;
    for (int64_t tap = 0; tap < taps; ++tap) {
      int64_t at = tap * dilation - pad; // input position of the first result
      int64_t first = at < 0 ? llvm::divideCeil(-at, stride) : 0;
      int64_t last = std::min(y[2] - 1, at > x[2] - 1 ? -1 : (x[2] - 1 - at) / stride);
      if (last < first) {
        continue;
      }
      Piece piece = Piece::identity(0, dims);
      piece.srcDims = {0, 3, 1, -1, 2, 4, 5};
      piece.srcOffsets = {0, 0, 0, first * stride + at, 0, 0};
      piece.srcSteps[1] = stride;
      piece.sizes[1] = last - first + 1, piece.dstOffsets[1] = first;
      piece.sizes[3] = 1, piece.dstOffsets[3] = tap;
      pieces.push_back(piece);
      covered += piece.sizes[1];
    }
    bool whole = covered == taps * y[2];
    FloatAttr fill = whole ? FloatAttr() : build.builder.getF64FloatAttr(double(int64_t(conv.getPadValue())));
    return build.reshape(build.copy(build.reshape(conv.getX(), source), pieces, dims, fill), flat);
  }

  /// Returns the constant weights [OC, C / G, KD, KH, KW] with dims |dims|, reordered to [OC, KD, C / G, KH, KW] if
  /// |depthFirst|.
  Value weightsAs(ArrayRef<int64_t> dims, bool depthFirst) {
    top::TensorData data = *top::getConstantData(conv.getW());
    Type element = data.type.getElementType();
    std::vector<char> bytes(data.bytes.size());
    Dims moved(w);
    Piece piece = Piece::identity(0, w);
    if (depthFirst) {
      std::swap(moved[1], moved[2]), std::swap(piece.sizes[1], piece.sizes[2]);
      std::swap(piece.srcDims[1], piece.srcDims[2]);
    }
    device::movePiece(piece.get(conv.getContext()), data.bytes.data(), w, bytes.data(), moved,
                      top::elementBytes(element));
    return top::createConstant(build.builder, conv.getW().getLoc(), RankedTensorType::get(dims, element),
                               std::move(bytes), "flat");
  }

  device::ConvOp conv;
  Builder2d build;
  Dims x, w, y;
  int64_t groups;
};

/// Replaces a maximum over volumes by one over the rows and columns of each frame, then one along the depth. Both views
/// are the same bytes.
void replacePool(device::PoolOp pool) {
  Builder2d build(pool);
  Dims x(Shape(pool.getX()).values()), y(Shape(pool.getY()).values());
  ArrayRef<int64_t> kernel = pool.getKernel(), strides = pool.getStrides(), pads = pool.getPads(),
                    dilations = pool.getDilations();
  OpBuilder &b = build.builder;
  auto attribute = [&](ArrayRef<int64_t> values) { return b.getDenseI64ArrayAttr(values); };
  Type element = typeOf(pool.getX()).getElementType();
  auto frames = RankedTensorType::get({x[0], x[1] * x[2], y[3], y[4]}, element);
  Value image = build.reshape(pool.getX(), {x[0], x[1] * x[2], x[3], x[4]});
  Value planes =
      device::PoolOp::create(b, pool.getLoc(), frames, image, ValueRange(), device::PoolKind::max,
                             attribute(kernel.drop_front()), attribute(strides.drop_front()),
                             attribute({pads[1], pads[2], pads[4], pads[5]}), attribute(dilations.drop_front()), false);
  auto columns = RankedTensorType::get(Builder2d::dimsOf(y, View::Columns), typeOf(pool.getY()).getElementType());
  auto flat = device::PoolOp::create(b, pool.getLoc(), columns, build.reshape(planes, {x[0], x[1], x[2], y[3] * y[4]}),
                                     build.viewedExtras(pool.getExtras(), View::Columns), device::PoolKind::max,
                                     attribute({kernel[0], 1}), attribute({strides[0], 1}),
                                     attribute({pads[0], 0, pads[3], 0}), attribute({dilations[0], 1}), false);
  flat.getEpilogue().takeBody(pool.getEpilogue());
  build.replaceResult(pool, build.volume(flat.getY(), View::Columns, y));
  pool.erase();
}

/// Returns true if at least two windows along the depth share the maxima of each frame. Otherwise the generic loop
/// kernel computes the windows directly.
bool sharesFrames(device::PoolOp pool) {
  return pool.getKind() == device::PoolKind::max && pool.getKernel()[0] >= 2 * pool.getStrides()[0];
}

bool isVolume(Value x, Value y) {
  return typeOf(x).getRank() == 5 && Shape(x).isKnown() && Shape(y).isKnown() && numElements(x) > 0 &&
         numElements(y) > 0;
}

class FlattenVolumes : public impl::FlattenVolumesPassBase<FlattenVolumes> {
public:
  using FlattenVolumesPassBase::FlattenVolumesPassBase;

  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops) {
      auto conv = dyn_cast<device::ConvOp>(op);
      auto pool = dyn_cast<device::PoolOp>(op);
      if (conv && isVolume(conv.getX(), conv.getY()) && FlatConv(conv).canReplace()) {
        FlatConv(conv).replace();
        ++numFlattened;
      } else if (pool && sharesFrames(pool) && isVolume(pool.getX(), pool.getY()) &&
                 Builder2d::knowsExtras(pool.getExtras(), Shape(pool.getY()).values())) {
        replacePool(pool);
        ++numFlattened;
      }
    }
  }
};

} // namespace
} // namespace tessera::x86
