//===- TopConvOps.cpp - Convolution, matmul and pooling: verify and infer ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopConvOps.h"

#include "top_dialect/IR/ShapeInference.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::top;
using namespace tessera::top::detail;

//===----------------------------------------------------------------------===//
// Window geometry
//===----------------------------------------------------------------------===//

namespace {
/// Attributes that sliding-window ops have in common.
struct Window {
  ArrayRef<int64_t> strides;
  ArrayRef<int64_t> pads;
  ArrayRef<int64_t> dilations;

  int64_t spatialRank() const { return static_cast<int64_t>(strides.size()); }
  int64_t padding(int64_t dim) const { return pads[dim] + pads[dim + spatialRank()]; }
};

// Limit far beyond any real window, but far below an overflow in the size formulas.
constexpr int64_t kMaxGeometry = int64_t(1) << 31;
} // namespace

static LogicalResult checkEntries(Operation *op, StringRef name, ArrayRef<int64_t> values, int64_t count,
                                  int64_t minimum, StringRef label) {
  if (static_cast<int64_t>(values.size()) != count) {
    return op->emitOpError() << name << " has " << values.size() << " entries, must have " << count << " (" << label
                             << ")";
  }
  for (int64_t value : values) {
    if (value < minimum || value > kMaxGeometry) {
      return op->emitOpError() << name << " has the entry " << value << ", allowed are " << minimum << " to "
                               << kMaxGeometry << " (" << label << ")";
    }
  }
  return success();
}

static LogicalResult checkWindow(Operation *op, const Window &window, int64_t spatialRank) {
  if (failed(checkEntries(op, "strides", window.strides, spatialRank, 1, "C2")) ||
      failed(checkEntries(op, "dilations", window.dilations, spatialRank, 1, "C2"))) {
    return failure();
  }
  return checkEntries(op, "pads", window.pads, 2 * spatialRank, 0, "C3");
}

static LogicalResult checkRank(Operation *op, Value x) {
  if (rankOf(x) < 3 || rankOf(x) > 5) {
    return op->emitOpError() << "input has rank " << rankOf(x) << ", allowed are 3 to 5 (C1)";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

template <typename ConvLike>
static LogicalResult checkConv(ConvLike op, const Window &window, Dim outChannels, Dim weightInChannels,
                               Dim expectedInChannels) {
  Value x = op.getX();
  Value w = op.getW();
  if (failed(checkRank(op, x))) { // conv_c1
    return failure();
  }
  if (rankOf(w) != rankOf(x)) { // conv_c1
    return op.emitOpError() << "weight has rank " << rankOf(w) << ", input rank " << rankOf(x)
                            << "; they must be equal (C1)";
  }
  if (failed(checkWindow(op, window, rankOf(x) - 2))) { // conv_c2, conv_c3
    return failure();
  }
  SmallVector<Value> typed{x, w};
  if (op.getBias()) {
    typed.push_back(op.getBias());
  }
  if (failed(checkSameElement(op, typed, "C8"))) { // conv_c8
    return failure();
  }
  int64_t groups = op.getGroups();
  Dim channels = shapeOf(x)[1];
  if (groups < 1 || !mayDivide(groups, channels) || !mayDivide(groups, outChannels)) { // conv_c4
    return op.emitOpError() << "groups = " << groups << " does not divide the " << formatShape(channels)
                            << " input and " << formatShape(outChannels) << " output channels (C4)";
  }
  if (!dimsAgree(weightInChannels, expectedInChannels)) { // conv_c4
    return op.emitOpError() << "weight of " << formatShape(shapeOf(w)) << " with groups = " << groups << " expects "
                            << formatShape(weightInChannels) << " input channels per group, the input of "
                            << formatShape(shapeOf(x)) << " has " << formatShape(expectedInChannels) << " (C4)";
  }
  if (Value bias = op.getBias(); bias && !shapesAgree(shapeOf(bias), {outChannels})) { // conv_c5
    return op.emitOpError() << "bias is " << formatShape(shapeOf(bias)) << ", but must be "
                            << formatShape({outChannels}) << " (C5)";
  }
  return success();
}

static LogicalResult checkOutputDim(Operation *op, int64_t dim, Dim size, StringRef label) {
  if (size.isKnown() && size.value() < 1) {
    return op->emitOpError() << "spatial dim " << dim << " of the output would be " << size.value()
                             << ": the window is larger than the padded input (" << label << ")";
  }
  if (size.isSymbolic() && minOf(size) < 1) {
    return op->emitOpError() << "spatial dim " << dim << " of the output is " << toText(size)
                             << ": at the smallest size, the window is larger than the padded input (" << label << ")";
  }
  return success();
}

LogicalResult ConvOp::inferShapes(Types &types) {
  Window window{getStrides(), getPads(), getDilations()};
  Dims x = shapeOf(getX()), w = shapeOf(getW());
  Dim outChannels = w.empty() ? 0 : w[0];
  auto groups = static_cast<int64_t>(getGroups());
  Dim perGroup = x.size() > 1 && groups > 0 ? floorDiv(x[1], groups) : Dim(ShapedType::kDynamic);
  if (failed(checkConv(*this, window, outChannels, w.size() > 1 ? w[1] : 0, perGroup))) {
    return failure();
  }
  Dims shape{x[0], outChannels};
  for (int64_t d = 0; d < window.spatialRank(); ++d) {
    Dim extent = mulDims(window.dilations[d], w[d + 2] - 1) + 1;
    Dim out = floorDiv(x[d + 2] + window.padding(d) - extent, window.strides[d]) + 1;
    out = out.isKnown() ? max(out, 0) : out;
    if (failed(checkOutputDim(*this, d, out, "C6"))) { // conv_c6
      return failure();
    }
    shape.push_back(out);
  }
  return addType(*this, shape, elementOf(getX()), types);
}

LogicalResult ConvTransposeOp::inferShapes(Types &types) {
  Window window{getStrides(), getPads(), getDilations()};
  Dims x = shapeOf(getX()), w = shapeOf(getW());
  Dim outChannels = w.size() > 1 ? mulDims(w[1], Dim(getGroups())) : 0;
  if (failed(checkConv(*this, window, outChannels, w.empty() ? 0 : w[0], x.size() > 1 ? x[1] : 0)) ||
      failed(checkEntries(*this, "outputPadding", getOutputPadding(), window.spatialRank(), 0, "C7"))) {
    return failure();
  }
  Dims shape{x[0], outChannels};
  for (int64_t d = 0; d < window.spatialRank(); ++d) {
    int64_t extra = getOutputPadding()[d];
    if (extra >= std::max(window.strides[d], window.dilations[d])) { // conv_transpose_c7
      return emitOpError() << "outputPadding " << extra << " must be below the stride " << window.strides[d]
                           << " or the dilation " << window.dilations[d] << " (C7)";
    }
    Dim out = mulDims(window.strides[d], x[d + 2] - 1) + extra + mulDims(window.dilations[d], w[d + 2] - 1) + 1 -
              window.padding(d);
    if (failed(checkOutputDim(*this, d, out, "C6"))) { // conv_transpose_c6
      return failure();
    }
    shape.push_back(out);
  }
  return addType(*this, shape, elementOf(getX()), types);
}

//===----------------------------------------------------------------------===//
// Matrix multiplication
//===----------------------------------------------------------------------===//

LogicalResult MatMulOp::inferShapes(Types &types) {
  if (rankOf(getA()) < 2 || rankOf(getB()) < 2) { // matmul_c1
    return emitOpError() << "operands have rank " << rankOf(getA()) << " and " << rankOf(getB())
                         << ", both must be at least 2 (C1)";
  }
  SmallVector<Value> typed{getA(), getB()};
  if (getBias()) {
    typed.push_back(getBias());
  }
  if (failed(checkSameElement(*this, typed, "C5"))) { // matmul_c5
    return failure();
  }
  Dims a = shapeOf(getA()), b = shapeOf(getB());
  Dim m = a[a.size() - (getTransA() ? 1 : 2)], ka = a[a.size() - (getTransA() ? 2 : 1)];
  Dim kb = b[b.size() - (getTransB() ? 1 : 2)], n = b[b.size() - (getTransB() ? 2 : 1)];
  if (!dimsAgree(ka, kb)) { // matmul_c2
    return emitOpError() << "inner dims are " << toText(ka) << " of " << formatShape(a) << " and " << toText(kb)
                         << " of " << formatShape(b) << ", they must be equal (C2)";
  }
  ArrayRef<Dim> batchA = ArrayRef(a).drop_back(2), batchB = ArrayRef(b).drop_back(2);
  Dims shape(batchA);
  if (!broadcastInto(shape, batchB)) { // matmul_c3
    return emitOpError() << "batch dims " << formatShape(batchA) << " and " << formatShape(batchB)
                         << " do not broadcast (C3)";
  }
  if (getBias() && !shapesAgree(shapeOf(getBias()), {n})) { // matmul_c4
    return emitOpError() << "bias is " << formatShape(shapeOf(getBias())) << ", but must be " << formatShape({n})
                         << " (C4)";
  }
  shape.append({m, n});
  return addType(*this, shape, elementOf(getA()), types);
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

template <typename Pool>
static LogicalResult inferPool(Pool op, Types &types) {
  Window window{op.getStrides(), op.getPads(), op.getDilations()};
  Dims x = shapeOf(op.getX());
  if (failed(checkRank(op, op.getX())) || // pool_c1
      failed(checkWindow(op, window, rankOf(op.getX()) - 2)) ||
      failed(checkEntries(op, "kernel", op.getKernel(), window.spatialRank(), 1, "C2"))) { // pool_c2, pool_c3
    return failure();
  }
  Dims shape{x[0], x[1]};
  for (int64_t d = 0; d < window.spatialRank(); ++d) {
    int64_t extent = mulDims(window.dilations[d], op.getKernel()[d] - 1) + 1;
    if (std::max(window.pads[d], window.pads[d + window.spatialRank()]) >= extent) { // pool_c3
      return op.emitOpError() << "pads of spatial dim " << d << " must be below the kernel extent " << extent
                              << " (C3)";
    }
    int64_t before = window.pads[d];
    Dim out = pooledSize(x[d + 2], extent, window.strides[d], before, window.padding(d) - before, op.getCeilMode());
    if (failed(checkOutputDim(op, d, out, "C4"))) { // pool_c4
      return failure();
    }
    shape.push_back(out);
  }
  return addType(op, shape, elementOf(op.getX()), types);
}

LogicalResult MaxPoolOp::inferShapes(Types &types) { return inferPool(*this, types); }

LogicalResult AvgPoolOp::inferShapes(Types &types) { return inferPool(*this, types); }
