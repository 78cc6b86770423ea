//===- DeviceMoveOpsDefs.cpp - Generated definitions of one family --------===//
// SPDX-License-Identifier: Apache-2.0
//
// Separate from the verifiers, so that an edit of the verifiers does not recompile this file.
//===----------------------------------------------------------------------===//
#include "device_dialect/IR/DeviceMoveOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

#include "device_dialect/IR/DeviceMoveEnums.cpp.inc"

#define GET_OP_CLASSES
#include "device_dialect/IR/DeviceMoveOps.cpp.inc"
