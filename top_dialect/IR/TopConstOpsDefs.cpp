//===- TopConstOpsDefs.cpp - Generated definitions and registration of the family ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/IR/TopBlockOps.h"
#include "top_dialect/IR/TopConstOps.h"
#include "top_dialect/IR/TopCustomOps.h"
#include "top_dialect/IR/TopFixedPointOps.h"

#include "llvm/ADT/StringExtras.h"

#include "top_dialect/IR/TopConstEnums.cpp.inc"

#define GET_OP_CLASSES
#include "top_dialect/IR/TopConstOps.cpp.inc"

void tessera::top::TopDialect::registerConstOps() {
  addOperations<
#define GET_OP_LIST
#include "top_dialect/IR/TopConstOps.cpp.inc"
      >();
  addOperations<BlockMatMulOp, CustomOp, RequantizeOp>(); // families of one op
}
