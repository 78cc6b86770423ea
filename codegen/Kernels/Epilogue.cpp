//===- Epilogue.cpp - Storing elements through an epilogue region ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/Epilogue.h"

#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace tessera::kernels {

Value convertElement(KernelBuilder &kb, Value value, Type from, Type to) {
  Type have = getElementTypeOrSelf(value.getType());
  if (have == to) {
    return value;
  }
  Type wanted = to;
  if (auto vector = dyn_cast<VectorType>(value.getType())) {
    wanted = VectorType::get(vector.getShape(), to);
  }
  if (isa<FloatType>(have)) {
    return arith::ExtFOp::create(kb.b, wanted, value);
  }
  bool isUnsigned = from.isUnsignedInteger() || from.isInteger(1);
  if (isa<FloatType>(to)) {
    return isUnsigned ? Value(arith::UIToFPOp::create(kb.b, wanted, value))
                      : Value(arith::SIToFPOp::create(kb.b, wanted, value));
  }
  return isUnsigned ? Value(arith::ExtUIOp::create(kb.b, wanted, value))
                    : Value(arith::ExtSIOp::create(kb.b, wanted, value));
}

Dim laneStride(RankedTensorType type, int64_t dim) {
  Strides strides(type);
  return strides.block && dim == 1 ? Dim(1) : strides.dims[dim];
}

bool broadcastsProvably(device::EpilogueInterface op) {
  auto types = llvm::map_to_vector(op.getEpilogueOperands(),
                                   [](Value value) { return cast<RankedTensorType>(value.getType()); });
  return broadcastsProvably(types, cast<RankedTensorType>(op->getResult(0).getType()));
}

Value applyEpilogue(KernelBuilder &kb, device::EpilogueInterface op, Value value) {
  return emitScalarRegion(kb, op.getEpilogueRegion(), value, beforeRounding(op.getEpilogueRegion()));
}

EpilogueStore::EpilogueStore(KernelBuilder &kb, device::EpilogueInterface op) : kb(kb), op(op) {}

Value EpilogueStore::loadExtra(unsigned operand, ArrayRef<Value> indices, int64_t laneDim, const VectorStep &step) {
  RankedTensorType type = kb.operandType(operand);
  int64_t missing = indices.size() - type.getRank();
  SmallVector<Value> own;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    own.push_back(Shape(type)[d].is(1) ? kb.constant(0) : indices[d + missing]);
  }
  int64_t ownLane = laneDim - missing;
  Dim stride = laneDim < 0 || ownLane < 0 || Shape(type)[ownLane].is(1) ? Dim(0) : laneStride(type, ownLane);
  Value offset = Strides(type).offset(kb, own);
  if (laneDim < 0) {
    return kb.loadElements(type.getElementType(), 0, kb.operand(operand), offset);
  }
  return loadLanes(kb, type.getElementType(), kb.operand(operand), stride, step, offset);
}

void EpilogueStore::store(Value accumulators, ArrayRef<Value> indices, int64_t laneDim, Value mask, bool padding,
                          bool aligned) {
  RankedTensorType type = kb.resultType();
  auto vector = dyn_cast<VectorType>(accumulators.getType());
  VectorStep step{{}, mask, vector ? unsigned(vector.getNumElements()) : 0, aligned};
  SmallVector<Value> arguments = {accumulators};
  OperandRange extras = op.getEpilogueOperands();
  for (unsigned i = 0; i < extras.size() && !op.getEpilogueRegion().empty(); ++i) {
    arguments.push_back(loadExtra(extras.getBeginOperandIndex() + i, indices, laneDim, step));
  }
  Value value = emitScalarRegion(kb, op.getEpilogueRegion(), arguments, beforeRounding(op.getEpilogueRegion()));
  Value offset = Strides(type).offset(kb, indices);
  if (laneDim < 0) {
    return kb.storeElements(type.getElementType(), value, kb.result(), offset);
  }
  if (padding && mask) {
    value = kb.zeroOutside(mask, value);
    step.mask = nullptr;
  }
  storeLanes(kb, type.getElementType(), value, kb.result(), laneStride(type, laneDim), step, offset);
}

} // namespace tessera::kernels
