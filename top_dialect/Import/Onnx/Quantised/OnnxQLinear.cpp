//===- OnnxQLinear.cpp - Handlers of operators on quantised integers ------===//
// SPDX-License-Identifier: Apache-2.0
//
// Each operator becomes dequantize, the float op and quantize. QDQ models have the same form, and the lowering turns it
// into integer ops. This way, each operation is defined only once, and both spellings in a model give the same result.
#include "top_dialect/Import/Onnx/NodeImporter.h"
#include "top_dialect/Import/Onnx/Operators/OpBuilders.h"

#include "llvm/Support/FormatVariadic.h"

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

/// Returns input |i|, with one number or one per entry of dim |axis|, in a shape that broadcasts to rank |rank|.
Value parameter(NodeImporter &n, unsigned i, int64_t rank, int64_t axis) {
  Value value = n.input(i);
  int64_t own = NodeImporter::rank(value);
  if (n.failed() || own > 1) {
    // Batches of matrices with a scale per row or column already have the rank of the matrices.
    if (own != rank) {
      n.fail(llvm::formatv("its input {0} has rank {1}; 0, 1 and {2} are allowed", i, own, rank));
    }
    return value;
  }
  int64_t count = own == 0 ? 1 : NodeImporter::dim(value, 0);
  if (count == 1) {
    return n.reshape(value, {});
  }
  Ints dims(rank, 1);
  if (axis < 0 || axis >= rank) {
    n.fail(llvm::formatv("its input {0} has {1} entries; expected one", i, count));
    return value;
  }
  dims[axis] = count;
  return n.reshape(value, dims);
}

/// The input indices of a quantised operand: its integers, scale and zero point.
struct Place {
  unsigned values, scale, zero;
};
constexpr Place at(unsigned first) { return {first, first + 1, first + 2}; }

/// Returns the operand in f32. Per-channel parameters apply along |axis|.
Value dequantise(NodeImporter &n, Place place, int64_t axis = -1) {
  Value x = n.input(place.values);
  int64_t rank = NodeImporter::rank(x);
  Value zero =
      n.hasInput(place.zero) ? parameter(n, place.zero, rank, axis) : n.scalar(NodeImporter::elementType(x), 0.0);
  Value scale = n.cast(parameter(n, place.scale, rank, axis), n.b.getF32Type());
  return n.create<DequantizeOp>(x, scale, zero);
}

/// Sets the result to |y| quantised with the inputs |scale| and |zero|. Without a zero point it has the type of input
/// |like|.
void quantise(NodeImporter &n, Value y, unsigned scale, unsigned zero, unsigned like = 0) {
  int64_t rank = NodeImporter::rank(y);
  Value zeroPoint =
      n.hasInput(zero) ? parameter(n, zero, rank, -1) : n.scalar(NodeImporter::elementType(n.input(like)), 0.0);
  Value f32Scale = n.cast(parameter(n, scale, rank, -1), n.b.getF32Type());
  n.setOutput(0, n.create<QuantizeOp>(y, f32Scale, zeroPoint));
}

bool requireChannelsFirst(NodeImporter &n) {
  if (n.intAttr("channels_last", 0) != 0) {
    n.unsupported("channels_last is not supported; allowed is 0");
  }
  return !n.failed();
}

/// Dequantises an i32 bias whose scale is the product of the scales of both operands.
Value dequantiseBias(NodeImporter &n, unsigned bias, unsigned scaleA, unsigned scaleB) {
  Value values = n.input(bias);
  auto flat = [&](unsigned i) {
    Value scale = n.cast(n.input(i), n.b.getF32Type());
    Ints dims;
    for (int64_t dim : NodeImporter::shape(scale)) {
      if (dim != 1) {
        dims.push_back(dim);
      }
    }
    return n.reshape(scale, dims);
  };
  Value scale = n.create<MulOp>(flat(scaleA), flat(scaleB));
  return n.create<DequantizeOp>(values, scale, n.scalar(NodeImporter::elementType(values), 0.0));
}

void qLinearConv(NodeImporter &n) {
  if (!requireChannelsFirst(n)) {
    return;
  }
  Value bias = n.hasInput(8) ? dequantiseBias(n, 8, 1, 4) : Value();
  quantise(n, makeConv(n, dequantise(n, at(0)), dequantise(n, at(3), 0), bias), 6, 7);
}

void qLinearMatMul(NodeImporter &n) {
  int64_t rankA = NodeImporter::rank(n.input(0)), rankB = NodeImporter::rank(n.input(3));
  Value a = dequantise(n, at(0), rankA - 2), b = dequantise(n, at(3), rankB - 1);
  quantise(n, makeNumpyMatMul(n, a, b), 6, 7);
}

/// Computes alpha a b + c, where the bias has the scale of alpha a b. Without an output scale the result is f32.
void qGemm(NodeImporter &n) {
  bool transA = n.intAttr("transA", 0) != 0, transB = n.intAttr("transB", 0) != 0;
  double alpha = n.floatAttr("alpha", 1.0);
  Value a = dequantise(n, at(0)), b = dequantise(n, at(3), transB ? 0 : 1), c;
  if (NodeImporter::rank(a) != 2 || NodeImporter::rank(b) != 2) {
    n.fail(
        llvm::formatv("its operands have ranks {0} and {1}; expected 2", NodeImporter::rank(a), NodeImporter::rank(b)));
  }
  if (n.failed()) {
    return;
  }
  int64_t columns = NodeImporter::dim(b, transB ? 0 : 1);
  if (n.hasInput(6)) {
    c = dequantiseBias(n, 6, 1, 4);
  }
  bool row = c && NodeImporter::dim(c, NodeImporter::rank(c) - 1) == columns &&
             (NodeImporter::rank(c) == 1 || (NodeImporter::rank(c) == 2 && NodeImporter::dim(c, 0) == 1));
  // A dequantised row stays a row, because the lowering reads its integers.
  bool inside = row && NodeImporter::rank(c) == 1;
  Value y = n.create<MatMulOp>(a, b, inside ? c : Value(), transA, transB, false, llvm::APFloat(-1.0));
  if (c && !inside) {
    y = n.create<AddOp>(y, c);
  }
  if (alpha != 1.0) {
    y = n.create<MulOp>(y, n.scalarLike(y, alpha));
  }
  if (n.hasInput(7)) {
    quantise(n, y, 7, 8);
  } else {
    n.setOutput(0, y);
  }
}

template <typename Op>
void qLinearBinary(NodeImporter &n) {
  quantise(n, n.create<Op>(dequantise(n, at(0)), dequantise(n, at(3))), 6, 7);
}

void qLinearSigmoid(NodeImporter &n) { quantise(n, n.create<SigmoidOp>(dequantise(n, at(0))), 3, 4); }

void qLinearLeakyRelu(NodeImporter &n) {
  llvm::APFloat alpha(static_cast<float>(n.floatAttr("alpha", 0.01)));
  quantise(n, n.create<LeakyReluOp>(dequantise(n, at(0)), alpha), 3, 4);
}

void qLinearAveragePool(NodeImporter &n) {
  if (requireChannelsFirst(n)) {
    quantise(n, makeAveragePool(n, dequantise(n, at(0))), 3, 4);
  }
}

void qLinearGlobalAveragePool(NodeImporter &n) {
  if (requireChannelsFirst(n)) {
    Value x = dequantise(n, at(0));
    quantise(n, n.create<ReduceOp>(x, ReduceKind::mean, spatialAxes(n, x), true), 3, 4);
  }
}

void qLinearReduceMean(NodeImporter &n) {
  Value x = dequantise(n, at(0));
  Ints axes = n.normalizeAxes(n.intsAttr("axes"), NodeImporter::rank(x));
  for (int64_t d = 0; axes.empty() && d < NodeImporter::rank(x); ++d) {
    axes.push_back(d);
  }
  llvm::sort(axes);
  quantise(n, n.create<ReduceOp>(x, ReduceKind::mean, axes, n.intAttr("keepdims", 1) != 0), 3, 4);
}

/// The inputs are the scale and zero point of the result, then three inputs per part.
void qLinearConcat(NodeImporter &n) {
  if (n.numInputs() < 5 || n.numInputs() % 3 != 2) {
    n.fail(llvm::formatv("it has {0} inputs; expected two and three per part", n.numInputs()));
    return;
  }
  llvm::SmallVector<Value> parts;
  for (unsigned i = 2; i < n.numInputs(); i += 3) {
    parts.push_back(dequantise(n, at(i)));
  }
  int64_t axis = n.normalizeAxis(n.requiredInt("axis"), NodeImporter::rank(parts.front()));
  quantise(n, n.create<ConcatOp>(mlir::ValueRange(parts), axis), 0, 1, 2);
}

/// The attribute opset selects the softmax definition.
void qLinearSoftmax(NodeImporter &n) {
  Value x = dequantise(n, at(0));
  quantise(n, n.requiredInt("opset") < 13 ? makeFlatSoftmax(n, x, false) : makeSoftmax(n, x, false), 3, 4);
}

void qLinearWhere(NodeImporter &n) {
  quantise(n, n.create<WhereOp>(n.input(0), dequantise(n, at(1)), dequantise(n, at(4))), 7, 8, 1);
}

} // namespace

llvm::ArrayRef<HandlerEntry> qLinearHandlers() {
  static const HandlerEntry entries[] = {
      {"", "QLinearConv", qLinearConv},
      {"", "QLinearMatMul", qLinearMatMul},
      {"com.microsoft", "QLinearConv", qLinearConv},
      {"com.microsoft", "QGemm", qGemm},
      {"com.microsoft", "QLinearAdd", qLinearBinary<AddOp>},
      {"com.microsoft", "QLinearMul", qLinearBinary<MulOp>},
      {"com.microsoft", "QLinearSigmoid", qLinearSigmoid},
      {"com.microsoft", "QLinearLeakyRelu", qLinearLeakyRelu},
      {"com.microsoft", "QLinearAveragePool", qLinearAveragePool},
      {"com.microsoft", "QLinearGlobalAveragePool", qLinearGlobalAveragePool},
      {"com.microsoft", "QLinearReduceMean", qLinearReduceMean},
      {"com.microsoft", "QLinearConcat", qLinearConcat},
      {"com.microsoft", "QLinearSoftmax", qLinearSoftmax},
      {"com.microsoft", "QLinearWhere", qLinearWhere},
  };
  return entries;
}

} // namespace tessera::top::onnx_import
