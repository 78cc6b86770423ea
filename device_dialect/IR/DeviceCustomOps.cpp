//===- DeviceCustomOps.cpp - Verifier of custom operators -----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceCustomOps.h"

#include "mlir/IR/Builders.h"
#include "top_dialect/IR/Sizes.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "device_dialect/IR/DeviceCustomOps.cpp.inc"

namespace tessera::device {

LogicalResult CustomOp::verify() {
  for (Type type : llvm::concat<Type>(llvm::to_vector(getOperandTypes()), llvm::to_vector(getResultTypes()))) {
    if (!Shape(cast<RankedTensorType>(type)).isDetermined()) { // custom_c1
      return emitOpError() << "has a tensor of type " << type
                           << ", allowed are sizes that are numbers or expressions (custom_c1)";
    }
  }
  return success();
}

} // namespace tessera::device
