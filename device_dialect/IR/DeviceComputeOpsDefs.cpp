//===- DeviceComputeOpsDefs.cpp - Generated definitions of one family -----===//
// SPDX-License-Identifier: Apache-2.0
//
// Separate from the verifiers, so that an edit of the verifiers does not recompile this file.
//===----------------------------------------------------------------------===//
#include "device_dialect/IR/DeviceComputeOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

#include "device_dialect/IR/DeviceComputeEnums.cpp.inc"

#define GET_OP_CLASSES
#include "device_dialect/IR/DeviceComputeOps.cpp.inc"
