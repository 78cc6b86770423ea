//===- TopReduceOpsDefs.cpp - Generated definitions and registration of the family ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/IR/TopReduceOps.h"

#include "llvm/ADT/StringExtras.h"

#include "top_dialect/IR/TopReduceEnums.cpp.inc"

#define GET_OP_CLASSES
#include "top_dialect/IR/TopReduceOps.cpp.inc"

void tessera::top::TopDialect::registerReduceOps() {
  addOperations<
#define GET_OP_LIST
#include "top_dialect/IR/TopReduceOps.cpp.inc"
      >();
}
