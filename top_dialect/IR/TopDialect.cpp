//===- TopDialect.cpp - Registration and constant materialisation ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TopConstOps.h"
#include "top_dialect/IR/WeightStore.h"

using namespace mlir;
using namespace tessera::top;

#include "top_dialect/IR/TopDialect.cpp.inc"

void TopDialect::initialize() {
  weightStore = std::make_shared<WeightStore>(getContext());
  registerAttributes();
  registerConstOps();
  registerElementwiseOps();
  registerConvOps();
  registerReduceOps();
  registerShapeOps();
}

// Returns null for larger values, which must be weights: a folder cannot create those, so the op is not folded.
Operation *TopDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  auto elements = dyn_cast<DenseElementsAttr>(value);
  auto tensorType = dyn_cast<RankedTensorType>(type);
  if (!elements || !tensorType || elements.getType() != tensorType || byteSize(tensorType) > kMaxInlineBytes) {
    return nullptr;
  }
  return ConstantOp::create(builder, loc, tensorType, elements);
}
