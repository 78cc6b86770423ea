//===- OnnxDeformConv.cpp - Handler of DeformConv ---===//
// SPDX-License-Identifier: Apache-2.0
//
// The pixels that each tap reads at its own offset are gathered into columns. A matmul multiplies them by the filters.
#include "top_dialect/Import/Onnx/NodeImporter.h"

#include "llvm/Support/FormatVariadic.h"

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

class DeformConv {
public:
  explicit DeformConv(NodeImporter &n) : n(n) {}

  void run() {
    x = n.input(0);
    w = n.input(1);
    offset = n.input(2);
    bias = n.optionalInput(3);
    mask = n.optionalInput(4);
    for (Value value : {x, w, offset, bias, mask}) {
      if (value && llvm::any_of(NodeImporter::shape(value), mlir::ShapedType::isDynamic)) {
        n.unsupported("needs static dims: fix them with --input_shapes");
      }
    }
    if (n.failed() || !readGeometry()) {
      return;
    }
    Value y = multiply(columns());
    n.setOutput(0, bias ? n.create<AddOp>(y, n.reshape(bias, {NodeImporter::dim(w, 0), 1, 1})) : y);
  }

private:
  bool readGeometry() {
    if (NodeImporter::rank(x) != 4 || NodeImporter::rank(w) != 4 || NodeImporter::rank(offset) != 4) {
      n.unsupported("only images are supported: an input, filters and offsets of rank 4");
      return false;
    }
    kernel = Ints(NodeImporter::shape(w).drop_front(2));
    strides = n.intsAttr("strides", {1, 1});
    dilations = n.intsAttr("dilations", {1, 1});
    pads = n.intsAttr("pads", {0, 0, 0, 0});
    groups = n.intAttr("group", 1);
    offsetGroups = n.intAttr("offset_group", 1);
    batch = NodeImporter::dim(x, 0);
    channels = NodeImporter::dim(x, 1);
    taps = kernel[0] * kernel[1];
    out = Ints(NodeImporter::shape(offset).drop_front(2));
    points = out[0] * out[1];
    bool fits =
        strides.size() == 2 && dilations.size() == 2 && pads.size() == 4 && groups > 0 && offsetGroups > 0 &&
        n.intsAttr("kernel_shape", kernel) == kernel && channels % groups == 0 && channels % offsetGroups == 0 &&
        NodeImporter::dim(w, 0) % groups == 0 && NodeImporter::dim(w, 1) * groups == channels &&
        NodeImporter::shape(offset) == llvm::ArrayRef<int64_t>({batch, offsetGroups * taps * 2, out[0], out[1]});
    fits &= !mask || NodeImporter::shape(mask) == llvm::ArrayRef<int64_t>({batch, offsetGroups * taps, out[0], out[1]});
    for (int d = 0; fits && d < 2; ++d) {
      int64_t space = NodeImporter::dim(x, 2 + d) + pads[d] + pads[2 + d] - dilations[d] * (kernel[d] - 1) - 1;
      fits = strides[d] > 0 && dilations[d] > 0 && space >= 0 && out[d] == space / strides[d] + 1;
    }
    if (!fits && !n.failed()) {
      n.fail("kernel_shape, strides, dilations, pads, group, offset_group, the input, filters, offsets and mask do "
             "not match");
    }
    return !n.failed();
  }

  /// Returns the coordinate in dim |d| that each tap of each point reads, f32 [N * offset groups, taps * points].
  Value coordinates(int64_t d) {
    llvm::SmallVector<double> places;
    for (int64_t tap = 0; tap < taps; ++tap) {
      int64_t at = d == 0 ? tap / kernel[1] : tap % kernel[1];
      for (int64_t point = 0; point < points; ++point) {
        int64_t place = d == 0 ? point / out[1] : point % out[1];
        places.push_back(static_cast<double>(place * strides[d] - pads[d] + at * dilations[d]));
      }
    }
    Value pairs = n.reshape(n.cast(offset, n.b.getF32Type()), {batch * offsetGroups, taps, 2, points});
    Value own = n.create<SliceOp>(pairs, Ints{0, 0, d, 0}, Ints{batch * offsetGroups, taps, 1, points}, Ints(4, 1));
    own = n.reshape(own, {batch * offsetGroups, taps * points});
    return n.create<AddOp>(own, n.floatConstant(n.b.getF32Type(), {taps * points}, places));
  }

  /// The pixels before and after a coordinate and their weights, which are 0 outside the image.
  struct Neighbours {
    Value index[2], weight[2];
  };

  Neighbours neighbours(int64_t d) {
    Value at = coordinates(d), below = n.create<FloorOp>(at), fraction = n.create<SubOp>(at, below);
    auto last = static_cast<double>(NodeImporter::dim(x, 2 + d) - 1);
    Neighbours both;
    for (int i = 0; i < 2; ++i) {
      Value index = i == 0 ? below : n.create<AddOp>(below, n.scalarLike(below, 1.0));
      Value weight = i == 1 ? fraction : n.create<SubOp>(n.scalarLike(fraction, 1.0), fraction);
      Value inside = n.create<AndOp>(n.create<CompareOp>(index, n.scalarLike(index, 0.0), CompareKind::ge),
                                     n.create<CompareOp>(index, n.scalarLike(index, last), CompareKind::le));
      both.weight[i] = n.create<WhereOp>(inside, weight, n.scalarLike(weight, 0.0));
      both.index[i] = n.cast(n.create<ClipOp>(index, llvm::APFloat(0.0), llvm::APFloat(last)), n.b.getI64Type());
    }
    return both;
  }

  /// Returns the sampled columns to multiply by the filters, [N, groups, channels / groups * taps, points].
  Value columns() {
    int64_t images = batch * offsetGroups, perGroup = channels / offsetGroups, width = NodeImporter::dim(x, 3),
            size = NodeImporter::dim(x, 2) * width;
    // Channels last, so that the channels of a point are contiguous.
    Value rows = n.transpose(n.reshape(x, {images, perGroup, size}), {0, 2, 1});
    Neighbours y = neighbours(0), across = neighbours(1);
    Value sum;
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) {
        Value place = n.create<MulOp>(y.index[i], n.scalarLike(y.index[i], static_cast<double>(width)));
        place = n.reshape(n.create<AddOp>(place, across.index[j]), {images, taps * points, 1});
        Value weight = n.reshape(n.create<MulOp>(y.weight[i], across.weight[j]), {images, taps * points, 1});
        Value part = n.create<GatherNdOp>(rows, place, 1);
        part = n.create<MulOp>(part, n.cast(weight, NodeImporter::elementType(x)));
        sum = sum ? n.create<AddOp>(sum, part) : part;
      }
    }
    sum = mask ? n.create<MulOp>(sum, n.reshape(mask, {images, taps * points, 1})) : sum;
    return n.reshape(n.transpose(sum, {0, 2, 1}), {batch, groups, channels / groups * taps, points});
  }

  Value multiply(Value columns) {
    int64_t filters = NodeImporter::dim(w, 0);
    Value matrix = n.reshape(w, {groups, filters / groups, channels / groups * taps});
    Value y = n.create<MatMulOp>(matrix, columns, Value(), false, false, false, llvm::APFloat(-1.0));
    return n.reshape(y, {batch, filters, out[0], out[1]});
  }

  NodeImporter &n;
  Value x, w, offset, bias, mask;
  Ints kernel, strides, dilations, pads, out;
  int64_t groups = 1, offsetGroups = 1, batch = 0, channels = 0, taps = 0, points = 0;
};

void deformConv(NodeImporter &n) { DeformConv(n).run(); }

constexpr HandlerEntry kHandlers[] = {{"", "DeformConv", deformConv, 19}};

} // namespace

llvm::ArrayRef<HandlerEntry> deformConvHandlers() { return kHandlers; }

} // namespace tessera::top::onnx_import
