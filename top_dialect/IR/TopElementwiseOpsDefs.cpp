//===- TopElementwiseOpsDefs.cpp - Generated definitions and registration of the family ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/ScalarEmitter.h"
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/IR/TopElementwiseOps.h"

#include "llvm/ADT/StringExtras.h"

#include "top_dialect/IR/TopElementwiseEnums.cpp.inc"

#define GET_OP_CLASSES
#include "top_dialect/IR/TopElementwiseOps.cpp.inc"

void tessera::top::TopDialect::registerElementwiseOps() {
  addOperations<
#define GET_OP_LIST
#include "top_dialect/IR/TopElementwiseOps.cpp.inc"
      >();
}
