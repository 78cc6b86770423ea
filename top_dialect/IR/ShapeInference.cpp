//===- ShapeInference.cpp - Shared helpers of shape inference -------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/ShapeInference.h"

#include "mlir/Dialect/Quant/IR/QuantTypes.h"
#include "top_dialect/IR/Constants.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::top;
using namespace tessera::top::detail;

//===--- sizes ------------------------------------------------------------===//

static thread_local UnequalSizesRecorder *recorder = nullptr;

UnequalSizesRecorder::UnequalSizesRecorder() : outer(recorder) { recorder = this; }
UnequalSizesRecorder::~UnequalSizesRecorder() { recorder = outer; }

bool tessera::top::detail::dimsAgree(Dim a, Dim b) {
  if (a.isUnknown() || b.isUnknown() || sameSize(a, b)) {
    return true;
  }
  if (recorder && (a.isSymbolic() || b.isSymbolic())) {
    recorder->last = {a, b};
  }
  return false;
}

/// Returns |size| with |from| replaced by |to|.
static Dim replaceAtom(Dim size, Attribute from, Dim to) {
  SizeAttr attr = size.expression();
  MLIRContext *context = attr.getContext();
  Dim sum = 0;
  for (auto [coefficient, product] : llvm::zip(attr.getCoefficients(), attr.getMonomials())) {
    Dim term = coefficient;
    for (Attribute atom : product) {
      term *= atom == from ? to : Dim(SizeAttr::get(context, {1}, {ArrayAttr::get(context, {atom})}));
    }
    sum += term;
  }
  return sum;
}

/// Returns a lower bound of |coefficient| * floor(a / b), which equals (a - r) / b for an r in 0..b-1; unknown if the
/// bound has fractions.
static Dim boundQuotient(int64_t coefficient, SizeOperationAttr quotient) {
  Dim a(quotient.getLhs()), b(quotient.getRhs());
  if (!b.isKnown() || coefficient % b.value() != 0) {
    return ShapedType::kDynamic;
  }
  return (coefficient > 0 ? a - (b - 1) : a) * (coefficient / b.value());
}

/// Checks that |size| >= 0 for all values of its symbols: by interval arithmetic, or because it holds with a quotient,
/// min or max replaced by lower bounds of its term. |depth| limits the number of replacements.
static bool isNonNegative(Dim size, int depth = 6) {
  if (!size.isSymbolic() || minOf(size) >= 0 || depth == 0) {
    return minOf(size) >= 0;
  }
  SizeAttr attr = size.expression();
  for (auto [coefficient, product] : llvm::zip(attr.getCoefficients(), attr.getMonomials())) {
    auto operation = product.size() == 1 ? dyn_cast<SizeOperationAttr>(product[0]) : SizeOperationAttr();
    if (!operation || llvm::count_if(attr.getMonomials(), [&](ArrayAttr each) {
                        return llvm::is_contained(each, Attribute(operation));
                      }) != 1) {
      continue;
    }
    auto holds = [&](Dim bound) { return isNonNegative(replaceAtom(size, operation, bound), depth - 1); };
    Dim a(operation.getLhs()), b(operation.getRhs());
    bool isQuotient = operation.getFunction() == SizeFunction::FloorDiv;
    bool boundsTerm = (operation.getFunction() == SizeFunction::Max) == (coefficient > 0);
    if (isQuotient   ? isNonNegative(replaceAtom(size, operation, 0) + boundQuotient(coefficient, operation), depth - 1)
        : boundsTerm ? holds(a) || holds(b)
                     : holds(a) && holds(b)) {
      return true;
    }
  }
  return false;
}

bool tessera::top::detail::isAtMost(Dim a, Dim b) { return isNonNegative(b - a); }

int64_t tessera::top::detail::mulDims(int64_t a, int64_t b) {
  int64_t product = 0;
  if (ShapedType::isDynamic(a) || ShapedType::isDynamic(b)) {
    return ShapedType::kDynamic;
  }
  // Saturates far above what addType accepts, but far enough below 2^63 that sums cannot overflow.
  constexpr int64_t kSaturated = int64_t(1) << 61;
  return llvm::MulOverflow(a, b, product) ? kSaturated : std::clamp(product, -kSaturated, kSaturated);
}

Dim tessera::top::detail::mulDims(Dim a, Dim b) {
  return a.isKnown() && b.isKnown()       ? Dim(mulDims(a.value(), b.value()))
         : a.isUnknown() || b.isUnknown() ? Dim(ShapedType::kDynamic)
                                          : a * b;
}

static int64_t pooledNumber(int64_t in, int64_t extent, int64_t stride, int64_t before, int64_t behind, bool ceil) {
  int64_t space = in + before + behind - extent;
  int64_t size = space < 0 && !ceil ? 0 : (space + (ceil ? stride - 1 : 0)) / stride + 1;
  return ceil && (size - 1) * stride >= in + before ? size - 1 : size;
}

Dim tessera::top::detail::pooledSize(Dim in, int64_t extent, int64_t stride, int64_t before, int64_t behind,
                                     bool ceil) {
  if (in.isKnown()) {
    return pooledNumber(in.value(), extent, stride, before, behind, ceil);
  }
  Dim space = in + (before + behind - extent);
  return ceil ? min(ceilDiv(space, stride) + 1, ceilDiv(in + before, stride)) : floorDiv(space, stride) + 1;
}

bool tessera::top::detail::shapesAgree(ArrayRef<Dim> a, ArrayRef<Dim> b) {
  return a.size() == b.size() &&
         llvm::all_of(llvm::zip(a, b), [](auto pair) { return dimsAgree(std::get<0>(pair), std::get<1>(pair)); });
}

std::string tessera::top::detail::formatShape(ArrayRef<Dim> shape) {
  if (shape.empty()) {
    return "scalar";
  }
  auto format = [&](Dim dim) {
    std::string text = toText(dim);
    return shape.size() > 1 && StringRef(text).contains(' ') ? "(" + text + ")" : text;
  };
  return llvm::join(llvm::map_range(shape, format), "x");
}

std::string tessera::top::detail::formatShape(ArrayRef<int64_t> shape) { return formatShape(Shape(shape).dims()); }

bool tessera::top::detail::broadcastInto(Dims &result, ArrayRef<Dim> shape) {
  if (result.size() < shape.size()) {
    result.insert(result.begin(), shape.size() - result.size(), Dim(1));
  }
  size_t lead = result.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    Dim &dim = result[lead + i];
    Dim other = shape[i];
    if (dim.is(1)) {
      dim = other;
    } else if (other.is(1)) {
      continue;
    } else if (!dimsAgree(dim, other)) {
      return false;
    } else {
      dim = mergeDims(dim, other);
    }
  }
  return true;
}

//===--- checks and results -----------------------------------------------===//

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
  Dims shape;
  for (Value operand : op->getOperands()) {
    Dims before(shape);
    if (!broadcastInto(shape, shapeOf(operand))) {
      return op->emitOpError() << "dims " << formatShape(before) << " and " << formatShape(shapeOf(operand))
                               << " do not broadcast (C2)";
    }
  }
  return addType(op, shape, resultElement, types);
}

bool tessera::top::detail::exceedsLimit(RankedTensorType type) {
  Dims sizes = Shape(type).dims();
  if (llvm::any_of(sizes, [](Dim dim) { return !dim.isUnknown() && maxOf(dim) > kMaxTensorBytes; })) {
    return true;
  }
  if (!Shape(type).isDetermined()) {
    return false;
  }
  auto largest = llvm::map_to_vector(sizes, [](Dim dim) { return maxOf(dim); });
  int64_t bytes = byteSize(RankedTensorType::get(largest, type.getElementType()));
  return bytes < 0 || bytes > kMaxTensorBytes;
}

LogicalResult tessera::top::detail::addType(Operation *op, ArrayRef<Dim> shape, Type element, Types &types) {
  for (Dim dim : shape) {
    if (dim.isKnown() && dim.value() < 0) {
      return op->emitOpError() << "result would have the negative dim " << dim.value();
    }
    if (dim.isSymbolic() && minOf(dim) < 0) {
      return op->emitOpError() << "result has a dim of " << toText(dim) << ", which can be negative";
    }
  }
  RankedTensorType type = tensorType(shape, element);
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
    if (!shapesAgree(Shape(declared).dims(), Shape(type).dims()) ||
        !elementsCompatible(declared.getElementType(), type.getElementType())) {
      return op->emitOpError() << "result " << result.getResultNumber() << " is declared as " << declared
                               << ", but inferred as " << type;
    }
  }
  return success();
}
