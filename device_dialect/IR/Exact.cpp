//===- Exact.cpp - Functions whose floats decide integers -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/Exact.h"
#include "device_dialect/IR/DeviceComputeOps.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/TypeUtilities.h"
#include "top_dialect/IR/Names.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tessera::device {

static bool sumsFloats(Operation *op) {
  auto epilogue = dyn_cast<EpilogueInterface>(op);
  return epilogue && isa<FloatType>(epilogue.getAccumulatorType());
}

bool isOrderedContraction(Operation *op) {
  auto matmul = dyn_cast<MatMulOp>(op);
  return matmul && isExact(op) && sumsFloats(op) && isa<FloatType>(getElementTypeOrSelf(matmul.getB()));
}

bool hasSpecifiedBits(Operation *op) {
  if (isa<MatMulOp, ConvOp>(op)) {
    return !sumsFloats(op) || isOrderedContraction(op);
  }
  return !isa<RecurrentOp>(op);
}

void recordExceptions(Operation *function) {
  if (!function->hasAttr(kExactAttr)) {
    return;
  }
  llvm::SetVector<Attribute> names;
  function->walk([&](Operation *op) {
    if (!hasSpecifiedBits(op)) {
      std::string name = top::getDisplayName(op->getLoc());
      names.insert(StringAttr::get(op->getContext(), name.empty() ? op->getName().getStringRef().str() : name));
    }
  });
  function->setAttr(kExceptionsAttr, ArrayAttr::get(function->getContext(), names.getArrayRef()));
}

std::optional<std::vector<std::string>> exceptionsOf(Operation *function) {
  auto recorded = function->getAttrOfType<ArrayAttr>(kExceptionsAttr);
  if (!recorded) {
    return std::nullopt;
  }
  std::vector<std::string> names;
  for (Attribute name : recorded) {
    names.push_back(cast<StringAttr>(name).str());
  }
  return names;
}

} // namespace tessera::device
