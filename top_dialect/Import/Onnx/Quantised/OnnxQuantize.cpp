//===- OnnxQuantize.cpp - Handlers of explicit quantisation ---===//
// SPDX-License-Identifier: Apache-2.0
//
// They become quantize and dequantize ops, the same form that the quantiser produces. No precision is chosen here.
#include "top_dialect/Import/Onnx/Model/StorageTypes.h"
#include "top_dialect/Import/Onnx/NodeImporter.h"
#include "top_dialect/Import/Onnx/Operators/OpBuilders.h"

#include "llvm/Support/FormatVariadic.h"

using mlir::Value;

namespace tessera::top::onnx_import {

Value repeatBlocks(NodeImporter &n, Value parameter, int64_t axis, int64_t block, int64_t size) {
  Ints entries(NodeImporter::shape(parameter));
  if (axis >= static_cast<int64_t>(entries.size()) || llvm::any_of(entries, mlir::ShapedType::isDynamic) ||
      entries[axis] != (size + block - 1) / block) {
    n.fail(
        llvm::formatv("the scale or zero point does not have one entry per block of {0} along axis {1}", block, axis));
    return parameter;
  }
  Ints apart(entries), wide(entries), joined(entries), starts(entries.size(), 0), steps(entries.size(), 1);
  apart.insert(apart.begin() + axis + 1, 1);
  wide.insert(wide.begin() + axis + 1, block);
  joined[axis] *= block;
  Value all = n.reshape(n.create<ExpandOp>(n.reshape(parameter, apart), Value(), wide), joined);
  Ints ends(joined);
  ends[axis] = size;
  return ends == joined ? all : n.create<SliceOp>(all, starts, ends, steps);
}

namespace {

/// Reshapes a scale or zero point so that it broadcasts to |x|. It has one entry, one per entry of `axis`, or one per
/// block.
Value alignParameter(NodeImporter &n, Value parameter, Value x) {
  int64_t rank = NodeImporter::rank(x),
          count = NodeImporter::rank(parameter) == 0 ? 1 : NodeImporter::dim(parameter, 0);
  int64_t block = n.intAttr("block_size", 0);
  if (n.failed() || (block == 0 && count == 1)) {
    return n.reshape(parameter, {});
  }
  int64_t axis = n.normalizeAxis(n.intAttr("axis", 1), rank);
  if (block > 0) {
    return n.failed() ? parameter : repeatBlocks(n, parameter, axis, block, NodeImporter::dim(x, axis));
  }
  Ints dims(rank, 1);
  if (n.failed() || block < 0 || NodeImporter::rank(parameter) != 1) {
    n.fail(llvm::formatv("scale and zero point have rank {0} with block_size {1}; allowed are 0 and 1 without blocks",
                         NodeImporter::rank(parameter), block));
    return parameter;
  }
  dims[axis] = count;
  return n.reshape(parameter, dims);
}

void quantizeLinear(NodeImporter &n) {
  Value x = n.input(0), f32Scale = n.cast(n.input(1), n.b.getF32Type());
  Value zeroPoint = n.optionalInput(2);
  int64_t declared = n.intAttr("output_dtype", 0);
  const StorageType *storage = zeroPoint ? n.inputStorage(2) : findStorageType(static_cast<int>(declared));
  mlir::Type type = zeroPoint  ? NodeImporter::elementType(zeroPoint)
                    : declared ? n.typeOf(declared)
                               : mlir::IntegerType::get(n.b.getContext(), 8, mlir::IntegerType::Unsigned);
  n.setOutputStorage(0, storage);
  if (!n.failed() && !storage && !mlir::isa<mlir::IntegerType>(type)) {
    n.unsupported("its result is not an integer type");
  }
  if (n.failed()) {
    return;
  }
  Value scale = alignParameter(n, f32Scale, x), wide = n.cast(x, n.b.getF32Type());
  Value zero = zeroPoint ? alignParameter(n, zeroPoint, x) : n.scalar(type, 0.0);
  if (storage && storage->isFloat()) {
    Value quotient = n.create<DivOp>(wide, scale);
    n.setOutput(0, roundToStorage(n, zeroPoint ? n.create<AddOp>(quotient, zero) : quotient, *storage));
    return;
  }
  Value y = n.create<QuantizeOp>(wide, scale, zero);
  n.setOutput(0, storage ? clampToStorage(n, y, *storage) : y);
}

void dequantizeLinear(NodeImporter &n) {
  Value x = n.input(0), scale = n.input(1);
  Value zero = n.hasInput(2) ? alignParameter(n, n.input(2), x) : n.scalar(NodeImporter::elementType(x), 0.0);
  Value f32Scale = alignParameter(n, n.cast(scale, n.b.getF32Type()), x);
  int64_t declared = n.intAttr("output_dtype", 0);
  mlir::Type type = declared ? n.typeOf(declared) : NodeImporter::elementType(scale);
  const StorageType *storage = n.inputStorage(0);
  Value y;
  if (storage && storage->isFloat()) {
    Value centred = n.hasInput(2) ? n.create<SubOp>(x, zero) : x;
    y = n.create<MulOp>(centred, f32Scale);
  } else {
    y = n.create<DequantizeOp>(x, f32Scale, zero);
  }
  // Computed in f32 for any type of the scale. A narrower result is rounded once.
  n.setOutput(0, n.cast(y, type));
}

} // namespace

/// The range is widened to contain 0. If it contains only 0, the scale is 1, as in onnxruntime.
DynamicallyQuantised makeDynamicQuantize(NodeImporter &n, Value x) {
  Ints axes;
  for (int64_t d = 0; d < NodeImporter::rank(x); ++d) {
    axes.push_back(d);
  }
  Value zero = n.scalarLike(x, 0.0);
  auto extreme = [&](ReduceKind kind) { return axes.empty() ? x : n.create<ReduceOp>(x, kind, axes, false); };
  Value low = n.create<MinOp>(extreme(ReduceKind::min), zero), high = n.create<MaxOp>(extreme(ReduceKind::max), zero);
  Value step = n.create<DivOp>(n.create<SubOp>(high, low), n.scalarLike(x, 255.0));
  Value scale = n.create<WhereOp>(n.create<CompareOp>(high, low, CompareKind::eq), n.scalarLike(x, 1.0), step);
  Value point = n.create<DivOp>(n.create<SubOp>(zero, low), scale);
  point = n.create<RoundOp>(n.create<ClipOp>(point, llvm::APFloat(0.0), llvm::APFloat(255.0)));
  mlir::Type u8 = mlir::IntegerType::get(n.b.getContext(), 8, mlir::IntegerType::Unsigned);
  Value zeroPoint = n.cast(point, u8);
  return {n.create<QuantizeOp>(x, scale, zeroPoint), scale, zeroPoint};
}

namespace {

void dynamicQuantizeLinear(NodeImporter &n) {
  DynamicallyQuantised y = makeDynamicQuantize(n, n.input(0));
  n.setOutput(0, y.values);
  n.setOutput(1, y.scale);
  n.setOutput(2, y.zeroPoint);
}

} // namespace

llvm::ArrayRef<HandlerEntry> quantizeHandlers() {
  static const HandlerEntry entries[] = {
      {"", "QuantizeLinear", quantizeLinear},
      {"", "DequantizeLinear", dequantizeLinear},
      {"com.microsoft", "QuantizeLinear", quantizeLinear},
      {"com.microsoft", "DequantizeLinear", dequantizeLinear},
      {"", "DynamicQuantizeLinear", dynamicQuantizeLinear},
  };
  return entries;
}

} // namespace tessera::top::onnx_import
