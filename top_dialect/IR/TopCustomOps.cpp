//===- TopCustomOps.cpp - Types of custom operators -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopCustomOps.h"

#include "top_dialect/IR/ShapeInference.h"

using namespace mlir;
using namespace tessera::top;

#define GET_OP_CLASSES
#include "top_dialect/IR/TopCustomOps.cpp.inc"

namespace tessera::top {

static const CustomOperators *customOperators = nullptr;

const CustomOperators *getCustomOperators() { return customOperators; }
void setCustomOperators(const CustomOperators *operators) { customOperators = operators; }

CustomCall describeCall(CustomOp op) {
  return {op.getOpDomain(), op.getOpName(), int64_t(op.getOpVersion()), op.getOpAttributes()};
}

LogicalResult CustomOp::inferShapes(detail::Types &types) {
  for (Attribute attribute : getTypes()) {
    auto type = dyn_cast<RankedTensorType>(cast<TypeAttr>(attribute).getValue());
    if (!type || !Shape(type).isDetermined()) { // custom_c1
      return emitOpError() << "result " << types.size() << " has the type " << attribute
                           << ", but a tensor whose sizes are numbers or expressions is required (C1)";
    }
    types.push_back(type);
  }
  if (types.size() != getNumResults()) { // custom_c1
    return emitOpError() << getNumResults() << " results, but " << types.size() << " types (C1)";
  }
  const CustomOperators *operators = getCustomOperators();
  if (!operators || !operators->contains(getOpDomain(), getOpName())) {
    return success();
  }
  SmallVector<RankedTensorType> inputs;
  for (Type type : getOperandTypes()) {
    inputs.push_back(cast<RankedTensorType>(type));
  }
  auto given = operators->infer(describeCall(*this), inputs, getNumResults());
  if (!given) {
    return emitOpError() << llvm::toString(given.takeError()) << " (C2)";
  }
  for (auto [index, type] : llvm::enumerate(*given)) {
    if (type != types[index]) { // custom_c2
      return emitOpError() << "result " << index << " has type " << types[index] << ", but the shape rule of '"
                           << getOpDomain() << "::" << getOpName() << "' gives " << type << " (C2)";
    }
  }
  return success();
}

} // namespace tessera::top
