//===- ShapeInference.cpp - Shared helpers of shape inference -------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/ShapeInference.h"

#include "mlir/Dialect/Quant/IR/QuantTypes.h"
#include "top_dialect/IR/Constants.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera::top;
using namespace tessera::top::detail;

int64_t tessera::top::detail::mulDims(int64_t a, int64_t b) {
  int64_t product = 0;
  if (isDynamic(a) || isDynamic(b)) {
    return ShapedType::kDynamic;
  }
  // Saturates far above what addType accepts, but far enough below 2^63 that sums cannot overflow.
  constexpr int64_t kSaturated = int64_t(1) << 61;
  return llvm::MulOverflow(a, b, product) ? kSaturated : std::clamp(product, -kSaturated, kSaturated);
}

int64_t tessera::top::detail::pooledSize(int64_t in, int64_t extent, int64_t stride, int64_t before, int64_t behind,
                                         bool ceil) {
  int64_t space = in + before + behind - extent;
  int64_t size = space < 0 && !ceil ? 0 : (space + (ceil ? stride - 1 : 0)) / stride + 1;
  return ceil && (size - 1) * stride >= in + before ? size - 1 : size;
}

bool tessera::top::detail::shapesAgree(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  return a.size() == b.size() &&
         llvm::all_of(llvm::zip(a, b), [](auto pair) { return dimsAgree(std::get<0>(pair), std::get<1>(pair)); });
}

std::string tessera::top::detail::formatShape(ArrayRef<int64_t> shape) {
  if (shape.empty()) {
    return "scalar";
  }
  return llvm::join(
      llvm::map_range(shape, [](int64_t dim) { return isDynamic(dim) ? std::string("?") : std::to_string(dim); }), "x");
}

bool tessera::top::detail::broadcastInto(SmallVectorImpl<int64_t> &result, ArrayRef<int64_t> shape) {
  if (result.size() < shape.size()) {
    result.insert(result.begin(), shape.size() - result.size(), 1);
  }
  size_t lead = result.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t &dim = result[lead + i];
    int64_t other = shape[i];
    if (dim == 1) {
      dim = other;
    } else if (other == 1) {
      continue;
    } else if (!dimsAgree(dim, other)) {
      return false;
    } else {
      dim = mergeDims(dim, other);
    }
  }
  return true;
}

LogicalResult tessera::top::detail::checkSameElement(Operation *op, ValueRange values, StringRef label) {
  for (Value value : values) {
    Type first = quant::QuantizedType::castToExpressedType(elementOf(values.front()));
    Type element = quant::QuantizedType::castToExpressedType(elementOf(value));
    first = first ? first : elementOf(values.front());
    element = element ? element : elementOf(value);
    if (element != first) {
      return op->emitOpError() << "operands have element types " << first << " and " << element
                               << ", but they must be the same (" << label << ")";
    }
  }
  return success();
}

LogicalResult tessera::top::detail::inferElementwise(Operation *op, Type resultElement, unsigned firstSame,
                                                     Types &types) {
  if (failed(checkSameElement(op, op->getOperands().drop_front(firstSame), "C1"))) {
    return failure();
  }
  SmallVector<int64_t> shape;
  for (Value operand : op->getOperands()) {
    SmallVector<int64_t> before(shape);
    if (!broadcastInto(shape, shapeOf(operand))) {
      return op->emitOpError() << "dims " << formatShape(before) << " and " << formatShape(shapeOf(operand))
                               << " do not broadcast (C2)";
    }
  }
  return addType(op, shape, resultElement, types);
}

bool tessera::top::detail::exceedsLimit(RankedTensorType type) {
  if (llvm::any_of(type.getShape(), [](int64_t dim) { return !isDynamic(dim) && dim > kMaxTensorBytes; })) {
    return true;
  }
  if (!type.hasStaticShape()) {
    return false;
  }
  int64_t bytes = byteSize(type);
  return bytes < 0 || bytes > kMaxTensorBytes;
}

LogicalResult tessera::top::detail::addType(Operation *op, ArrayRef<int64_t> shape, Type element, Types &types) {
  for (int64_t dim : shape) {
    if (!isDynamic(dim) && dim < 0) {
      return op->emitOpError() << "result would have the negative dim " << dim;
    }
  }
  auto type = RankedTensorType::get(shape, element);
  if (exceedsLimit(type)) {
    return op->emitOpError() << "result of " << formatShape(shape) << " elements of " << element
                             << " exceeds the limit of " << (kMaxTensorBytes >> 30) << " GiB per tensor";
  }
  types.push_back(type);
  return success();
}

LogicalResult tessera::top::detail::checkAxis(Operation *op, int64_t axis, int64_t rank, StringRef label) {
  if (axis < 0 || axis >= rank) {
    return op->emitOpError() << "axis " << axis << " is not within rank " << rank << " (" << label << ")";
  }
  return success();
}

LogicalResult tessera::top::detail::checkIndexType(Operation *op, Value indices, StringRef label) {
  Type element = elementOf(indices);
  if (!element.isSignlessInteger(32) && !element.isSignlessInteger(64)) {
    return op->emitOpError() << "indices have element type " << element << ", allowed are i32 and i64 (" << label
                             << ")";
  }
  return success();
}

// A quantised type is compatible with its expressed type: precision is decided after shape inference.
static bool elementsCompatible(Type declared, Type inferred) {
  auto expressed = [](Type type) {
    auto quantized = dyn_cast<quant::QuantizedType>(type);
    return quantized ? quantized.getExpressedType() : type;
  };
  return expressed(declared) == expressed(inferred);
}

LogicalResult tessera::top::detail::verifyInferredTypes(Operation *op) {
  SmallVector<RankedTensorType> inferred;
  if (failed(cast<ShapeInterface>(op).inferShapes(inferred))) {
    return failure();
  }
  if (inferred.size() != op->getNumResults()) {
    return op->emitOpError() << "has " << op->getNumResults() << " results, inferred are " << inferred.size();
  }
  for (auto [result, type] : llvm::zip(op->getResults(), inferred)) {
    auto declared = cast<RankedTensorType>(result.getType());
    if (!shapesAgree(declared.getShape(), type.getShape()) ||
        !elementsCompatible(declared.getElementType(), type.getElementType())) {
      return op->emitOpError() << "result " << result.getResultNumber() << " is declared as " << declared
                               << ", but inferred as " << type;
    }
  }
  return success();
}
