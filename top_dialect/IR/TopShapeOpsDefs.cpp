//===- TopShapeOpsDefs.cpp - Generated definitions and registration of the family ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/IR/TopShapeOps.h"

#include "llvm/ADT/StringExtras.h"

#include "top_dialect/IR/TopShapeEnums.cpp.inc"

#define GET_OP_CLASSES
#include "top_dialect/IR/TopShapeOps.cpp.inc"

void tessera::top::TopDialect::registerShapeOps() {
  addOperations<
#define GET_OP_LIST
#include "top_dialect/IR/TopShapeOps.cpp.inc"
      >();
}
