//===- TopConvOpsDefs.cpp - Generated definitions and registration of the family ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/IR/TopConvOps.h"

#include "llvm/ADT/StringExtras.h"

#include "top_dialect/IR/TopConvEnums.cpp.inc"

#define GET_OP_CLASSES
#include "top_dialect/IR/TopConvOps.cpp.inc"

void tessera::top::TopDialect::registerConvOps() {
  addOperations<
#define GET_OP_LIST
#include "top_dialect/IR/TopConvOps.cpp.inc"
      >();
}
