//===- OnnxConstant.cpp - Handlers of constants, ranges and sizes ------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Model/StorageTypes.h"
#include "top_dialect/Import/Onnx/NodeImporter.h"
#include "top_dialect/Import/Onnx/Shapes/RunTimeShapes.h"
#include "top_dialect/Import/Onnx/Sizes/ShapeArithmetic.h"
#include "top_dialect/Import/Onnx/Sizes/SizeValues.h"

#include <algorithm>
#include <cmath>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

void constantNode(NodeImporter &n) {
  using A = onnx::AttributeProto;
  mlir::Type f32 = n.b.getF32Type();
  if (auto *attribute = n.typedAttr("value", A::TENSOR)) {
    n.setOutputStorage(0, findStorageType(attribute->t().data_type()));
    n.setOutput(0, n.constant(attribute->t(), nodeName(n.node)));
  } else if (n.hasAttr("value_float")) {
    n.setOutput(0, n.scalar(f32, n.floatAttr("value_float", 0)));
  } else if (n.hasAttr("value_int")) {
    Value vector = n.intVector({n.intAttr("value_int", 0)});
    n.setOutput(0, n.reshape(vector, {}));
  } else if (n.hasAttr("value_floats")) {
    auto values = n.floatsAttr("value_floats");
    n.setOutput(0, n.floatConstant(f32, {static_cast<int64_t>(values.size())}, values));
  } else if (n.hasAttr("value_ints")) {
    n.setOutput(0, n.intVector(n.intsAttr("value_ints")));
  } else {
    n.unsupported("it has none of the attributes value, value_float, value_floats, value_int, value_ints; strings and "
                  "sparse tensors are "
                  "not supported");
  }
}

void constantOfShape(NodeImporter &n) {
  Value shape = n.input(0);
  Value value = n.scalar(n.b.getF32Type(), 0.0);
  if (auto *attribute = n.typedAttr("value", onnx::AttributeProto::TENSOR)) {
    value = n.constant(attribute->t(), nodeName(n.node));
  }
  if (auto *attribute = n.findAttr("value")) {
    n.setOutputStorage(0, findStorageType(attribute->t().data_type()));
  }
  auto data = getConstantData(value);
  if (n.failed() || !data || data->type.getNumElements() != 1) {
    n.fail("attribute 'value' does not hold one element");
    return;
  }
  auto splat = mlir::DenseElementsAttr::getFromRawBuffer(data->type, data->bytes);
  if (data->type.getElementType().isInteger(1)) {
    splat = mlir::DenseElementsAttr::get(data->type, data->bytes[0] != 0);
  }
  auto sizes = isRunTime(n, 0) ? std::optional(n.sizesInput(0, "the shape")) : n.openSizes(shape);
  if (sizes) {
    n.setOutput(0, n.expandTo(n.reshape(value, {}), *sizes));
    return;
  }
  n.setOutput(0, n.create<ConstantOfShapeOp>(shape, splat));
}

void shapeOf(NodeImporter &n) {
  Value x = n.input(0);
  int64_t rank = NodeImporter::rank(x);
  auto clampAxis = [&](int64_t axis) { return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank); };
  int64_t start = clampAxis(n.intAttr("start", 0));
  int64_t end = clampAxis(n.intAttr("end", rank));
  n.setOutput(0, n.create<ShapeOp>(x, start, std::max(start, end)));
}

void sizeOf(NodeImporter &n) {
  Value x = n.input(0);
  Value dims = n.create<ShapeOp>(x, 0, NodeImporter::rank(x));
  n.setOutput(0, n.create<ReduceOp>(dims, ReduceKind::prod, Ints{0}, false));
}

/// Returns the size that |value| holds, an integer or its float; nothing if it is not known.
std::optional<Dim> readSize(Value value) {
  if (auto floats = NodeImporter::isFloat(value) ? getConstantDoubles(value) : std::nullopt) {
    constexpr double kFar = 1 << 24;
    bool isWhole =
        floats->size() == 1 && std::abs(floats->front()) < kFar && std::floor(floats->front()) == floats->front();
    return isWhole ? std::optional(Dim(int64_t(floats->front()))) : std::nullopt;
  }
  auto cast = NodeImporter::isFloat(value) ? value.getDefiningOp<CastOp>() : CastOp();
  auto sizes = readSizes(cast ? cast.getX() : value);
  return sizes && sizes->size() == 1 && !sizes->front().isUnknown() ? std::optional(sizes->front()) : std::nullopt;
}

void range(NodeImporter &n) {
  bool isInteger = !n.failed() && NodeImporter::elementType(n.input(1)).isSignlessInteger();
  auto first = isInteger ? getConstantInts(n.input(0)) : std::nullopt,
       by = isInteger ? getConstantInts(n.input(2)) : first;
  constexpr int64_t kMost = 1 << 16;
  if (first && by && first->front() >= 0 && by->front() == 1 && isRunTime(n, 1)) {
    (void)n.bindSizes(n.input(1), kMost); // read below
  }
  auto start = n.failed() ? std::nullopt : readSize(n.input(0)), limit = start ? readSize(n.input(1)) : std::nullopt,
       delta = limit ? readSize(n.input(2)) : std::nullopt;
  if (delta && delta->is(1) && (start->isSymbolic() || limit->isSymbolic())) {
    n.setOutput(0, openRange(n, *start, *limit, NodeImporter::elementType(n.input(0))));
    return;
  }
  if (isRunTime(n, 0) || isRunTime(n, 1) || isRunTime(n, 2)) {
    rangeRunTime(n);
    return;
  }
  n.setOutput(0, n.create<RangeOp>(n.input(0), n.input(1), n.input(2)));
}

void eyeLike(NodeImporter &n) {
  Value x = n.input(0);
  auto shape = NodeImporter::shape(x);
  if (shape.size() != 2 || llvm::any_of(shape, mlir::ShapedType::isDynamic) ||
      shape[0] * shape[1] > (int64_t(1) << 28)) {
    n.fail("its input must be a matrix of static, reasonable size");
    return;
  }
  if (!n.charge(shape[0] * shape[1] * static_cast<int64_t>(sizeof(double)))) {
    return;
  }
  mlir::Type element = n.hasAttr("dtype") ? n.typeOf(n.intAttr("dtype", 0)) : NodeImporter::elementType(x);
  std::vector<double> values(shape[0] * shape[1], 0.0);
  int64_t k = std::clamp(n.intAttr("k", 0), -shape[0], shape[1]);
  for (int64_t row = 0; row < shape[0]; ++row) {
    if (row + k >= 0 && row + k < shape[1]) {
      values[row * shape[1] + row + k] = 1.0;
    }
  }
  n.setOutput(0, n.floatConstant(element, shape, values));
}

} // namespace

llvm::ArrayRef<HandlerEntry> constantHandlers() {
  static const HandlerEntry entries[] = {
      {"", "Constant", constantNode}, {"", "ConstantOfShape", constantOfShape},
      {"", "Shape", shapeOf},         {"", "Size", sizeOf},
      {"", "Range", range},           {"", "EyeLike", eyeLike},
  };
  return entries;
}

} // namespace tessera::top::onnx_import
