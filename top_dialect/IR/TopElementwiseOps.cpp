//===- TopElementwiseOps.cpp - Elementwise ops: fold, inference ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopElementwiseOps.h"

#include "mlir/IR/Matchers.h"
#include "top_dialect/IR/ShapeInference.h"

using namespace mlir;
using tessera::typeOf;
using namespace tessera::top;
using namespace tessera::top::detail;

// Checks that `attr` is a constant whose elements all equal `number`.
static bool isSplatOf(Attribute attr, double number) {
  auto elements = dyn_cast_or_null<DenseElementsAttr>(attr);
  if (!elements || !elements.isSplat()) {
    return false;
  }
  if (isa<FloatType>(elements.getElementType())) {
    return elements.getSplatValue<APFloat>().compare(FloatAttr::get(elements.getElementType(), number).getValue()) ==
           APFloat::cmpEqual;
  }
  return elements.getElementType().isIntOrIndex() && elements.getSplatValue<APInt>() == static_cast<uint64_t>(number);
}

// Returns `x` if it has exactly the type of the op's result and can replace it.
template <typename Op>
static OpFoldResult sameTyped(Op op, Value x) {
  return tessera::sameType(x, op->getResult(0)) ? OpFoldResult(x) : OpFoldResult();
}

OpFoldResult AddOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getB(), 0)) {
    return sameTyped(*this, getA());
  }
  return isSplatOf(adaptor.getA(), 0) ? sameTyped(*this, getB()) : OpFoldResult();
}

OpFoldResult SubOp::fold(FoldAdaptor adaptor) {
  return isSplatOf(adaptor.getB(), 0) ? sameTyped(*this, getA()) : OpFoldResult();
}

OpFoldResult MulOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getB(), 1)) {
    return sameTyped(*this, getA());
  }
  return isSplatOf(adaptor.getA(), 1) ? sameTyped(*this, getB()) : OpFoldResult();
}

OpFoldResult DivOp::fold(FoldAdaptor adaptor) {
  return isSplatOf(adaptor.getB(), 1) ? sameTyped(*this, getA()) : OpFoldResult();
}

OpFoldResult CastOp::fold(FoldAdaptor) { return sameTyped(*this, getX()); }

// Checks constraint C1 for one type.
static bool hasBits(Type type) {
  return type.isF32() || type.isF64() || (type.isInteger() && type.getIntOrFloatBitWidth() >= 8);
}

LogicalResult BitcastOp::inferShapes(SmallVectorImpl<RankedTensorType> &types) {
  Type from = elementOf(getX()), to = getTo();
  if (!hasBits(from) || !hasBits(to) || from.getIntOrFloatBitWidth() != to.getIntOrFloatBitWidth()) {
    return emitOpError() << "cannot read the bits of " << from << " as " << to
                         << ": allowed are 'f32', 'f64' and integers of as many bits, 8 or more (C1)";
  }
  return addType(*this, shapeOf(getX()), to, types);
}
