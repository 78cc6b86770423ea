//===- OnnxIntegerProducts.cpp - Handlers of products with integer results ---===//
// SPDX-License-Identifier: Apache-2.0
//
// They become products of i32 tensors: 8-bit integers widened to i32 minus their zero points. This is exact for any
// zero points, including those computed at run time. The lowering multiplies the 8-bit values directly.
#include "top_dialect/Import/Onnx/NodeImporter.h"
#include "top_dialect/Import/Onnx/Operators/OpBuilders.h"

#include "llvm/Support/FormatVariadic.h"

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

/// Returns i32(x) - i32(zero point), with one zero point for all elements or one per entry of dim |axis|. |zero| is the
/// index of the optional input with the zero points.
Value centred(NodeImporter &n, Value x, unsigned zero, int64_t axis) {
  mlir::Type element = NodeImporter::elementType(x);
  if (!element.isInteger(8) && !n.failed()) {
    n.unsupported("its operands are not int8 or uint8");
  }
  Value wide = n.cast(x, n.b.getI32Type());
  if (!n.hasInput(zero)) {
    return wide;
  }
  Value point = n.input(zero);
  int64_t rank = NodeImporter::rank(x), own = NodeImporter::rank(point);
  if (!n.failed() && NodeImporter::elementType(point) != element) {
    n.fail("a zero point has another element type than its tensor");
  }
  if (own == 1 && NodeImporter::dim(point, 0) != 1 && axis >= 0) {
    Ints dims(rank, 1);
    dims[axis] = NodeImporter::dim(point, 0);
    point = n.reshape(point, dims);
  } else if (own == 1 && NodeImporter::dim(point, 0) == 1) {
    point = n.reshape(point, {});
  } else if (own > 1 && own != rank) {
    n.fail(llvm::formatv("its input {0} has rank {1}; 0, 1 and {2} are allowed", zero, own, rank));
  }
  std::optional<llvm::SmallVector<double>> known = getConstantDoubles(point);
  if (known && llvm::all_of(*known, [](double value) { return value == 0; })) {
    return wide;
  }
  return n.create<SubOp>(wide, n.cast(point, n.b.getI32Type()));
}

Value integerMatMul(NodeImporter &n, Value a, unsigned zeroA, unsigned zeroB) {
  Value b = n.input(1);
  int64_t rankA = NodeImporter::rank(a), rankB = NodeImporter::rank(b);
  return makeNumpyMatMul(n, centred(n, a, zeroA, rankA - 2), centred(n, b, zeroB, rankB - 1));
}

void matMulInteger(NodeImporter &n) { n.setOutput(0, integerMatMul(n, n.input(0), 2, 3)); }

void convInteger(NodeImporter &n) {
  Value x = centred(n, n.input(0), 2, -1), w = centred(n, n.input(1), 3, 0);
  n.setOutput(0, makeConv(n, x, w, {}));
}

/// Returns f32(sums) * scale + bias, in the order of onnxruntime.
void finish(NodeImporter &n, Value sums, Value scale, unsigned bias) {
  Value y = n.create<MulOp>(n.cast(sums, n.b.getF32Type()), scale);
  n.setOutput(0, n.hasInput(bias) ? n.create<AddOp>(y, n.input(bias)) : y);
}

void matMulIntegerToFloat(NodeImporter &n) {
  Value scale = n.create<MulOp>(n.input(2), n.input(3));
  finish(n, integerMatMul(n, n.input(0), 4, 5), scale, 6);
}

void dynamicQuantizeMatMul(NodeImporter &n) {
  DynamicallyQuantised a = makeDynamicQuantize(n, n.input(0));
  Value left = n.create<SubOp>(n.cast(a.values, n.b.getI32Type()), n.cast(a.zeroPoint, n.b.getI32Type()));
  Value right = centred(n, n.input(1), 3, NodeImporter::rank(n.input(1)) - 1);
  finish(n, makeNumpyMatMul(n, left, right), n.create<MulOp>(a.scale, n.input(2)), 4);
}

} // namespace

llvm::ArrayRef<HandlerEntry> integerProductHandlers() {
  static const HandlerEntry entries[] = {
      {"", "MatMulInteger", matMulInteger},
      {"", "ConvInteger", convInteger},
      {"com.microsoft", "MatMulIntegerToFloat", matMulIntegerToFloat},
      {"com.microsoft", "DynamicQuantizeMatMul", dynamicQuantizeMatMul},
  };
  return entries;
}

} // namespace tessera::top::onnx_import
