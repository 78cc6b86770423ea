//===- DeviceDialect.cpp - Registration, attributes, interfaces -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/DeviceOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "top_dialect/IR/TopDialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera::device;

#include "device_dialect/IR/DeviceDialect.cpp.inc"
#include "device_dialect/IR/DeviceInterfaces.cpp.inc"
#include "device_dialect/IR/PackingInterface.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "device_dialect/IR/DeviceAttrs.cpp.inc"

void DeviceDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "device_dialect/IR/DeviceAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "device_dialect/IR/DeviceComputeOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "device_dialect/IR/DeviceMoveOps.cpp.inc"
      >();
}

LogicalResult BlockedAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t block,
                                  ArrayRef<tessera::top::SizeAttr>) {
  if (block < 1) { // blocked_c1
    return emitError() << "block " << block << " is not positive (blocked_c1)";
  }
  return success();
}

LogicalResult BlockedAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                          function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() < 2) { // blocked_c2
    return emitError() << "a channel-blocked tensor needs rank 2 or more, but has rank " << shape.size()
                       << " (blocked_c2)";
  }
  if (failed(tessera::top::verifySizes(getSizes(), shape, [&] { return emitError(); }))) {
    return failure();
  }
  if (!getSizes().empty() && ShapedType::isDynamic(shape[1])) { // blocked_c3
    return emitError() << "the number of channels of a channel-blocked tensor must be a number (blocked_c3)";
  }
  return success();
}

Attribute BlockedAttr::withSizes(ArrayRef<tessera::top::SizeAttr> sizes) const {
  return get(getContext(), getBlock(), sizes);
}
