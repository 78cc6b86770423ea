//===- Reduction.cpp - Combining values -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/Reduction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace tessera::kernels {

Value lowestValue(KernelBuilder &kb, Type elementType, Type type, bool smallest) {
  Type element = getElementTypeOrSelf(type);
  if (isa<FloatType>(element)) {
    double infinity = std::numeric_limits<double>::infinity();
    return kb.floatConstant(type, smallest ? infinity : -infinity);
  }
  unsigned width = element.getIntOrFloatBitWidth();
  bool isUnsigned = elementType.isUnsignedInteger() || width == 1;
  APInt value = smallest ? (isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width))
                         : (isUnsigned ? APInt::getMinValue(width) : APInt::getSignedMinValue(width));
  TypedAttr attribute = IntegerAttr::get(element, value);
  if (auto vector = dyn_cast<VectorType>(type)) {
    attribute = DenseElementsAttr::get(vector, Attribute(attribute));
  }
  return arith::ConstantOp::create(kb.b, attribute);
}

Value orderZeros(KernelBuilder &kb, Value x, Value y, Value extremum, bool smallest) {
  Type type = x.getType(), bits = kb.b.getIntegerType(getElementTypeOrSelf(type).getIntOrFloatBitWidth());
  bits = isa<VectorType>(type) ? cast<VectorType>(type).clone(bits) : bits;
  Value left = arith::BitcastOp::create(kb.b, bits, x), right = arith::BitcastOp::create(kb.b, bits, y);
  Value both = smallest ? Value(arith::OrIOp::create(kb.b, left, right)) : arith::AndIOp::create(kb.b, left, right);
  Value equal = arith::CmpFOp::create(kb.b, arith::CmpFPredicate::OEQ, x, y);
  return arith::SelectOp::create(kb.b, equal, arith::BitcastOp::create(kb.b, type, both), extremum);
}

Value emitExtremum(KernelBuilder &kb, Type elementType, Value x, Value y, bool smallest, bool ordersZeros) {
  if (isa<FloatType>(getElementTypeOrSelf(x.getType()))) {
    Value better = arith::CmpFOp::create(kb.b, smallest ? arith::CmpFPredicate::OLT : arith::CmpFPredicate::OGT, y, x);
    Value isNan = arith::CmpFOp::create(kb.b, arith::CmpFPredicate::UNO, y, y);
    // If x is a NaN, the inner select returns it.
    Value extremum = arith::SelectOp::create(kb.b, isNan, y, arith::SelectOp::create(kb.b, better, y, x));
    return ordersZeros ? orderZeros(kb, x, y, extremum, smallest) : extremum;
  }
  bool isUnsigned = elementType.isUnsignedInteger() || elementType.isInteger(1);
  if (smallest) {
    return isUnsigned ? Value(arith::MinUIOp::create(kb.b, x, y)) : Value(arith::MinSIOp::create(kb.b, x, y));
  }
  return isUnsigned ? Value(arith::MaxUIOp::create(kb.b, x, y)) : Value(arith::MaxSIOp::create(kb.b, x, y));
}

Value reduceLanes(KernelBuilder &kb, Value vector, function_ref<Value(Value, Value)> combine) {
  if (kb.sharedLane()) {
    for (unsigned distance = kRowThreads / 2; distance > 0; distance /= 2) {
      vector = combine(vector, kb.target.shuffle(kb, vector, distance));
    }
    return kb.target.broadcast(kb, vector, kb.constant(0));
  }
  int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
  assert(llvm::isPowerOf2_64(lanes) && "vectors are halved");
  while (lanes > 1) {
    lanes /= 2;
    SmallVector<int64_t> low(lanes), high(lanes);
    std::iota(low.begin(), low.end(), 0);
    std::iota(high.begin(), high.end(), lanes);
    Value first = vector::ShuffleOp::create(kb.b, vector, vector, low);
    Value second = vector::ShuffleOp::create(kb.b, vector, vector, high);
    vector = combine(first, second);
  }
  return vector::ExtractOp::create(kb.b, vector, int64_t(0));
}

} // namespace tessera::kernels
