//===- TopOps.h - All ops of the Top dialect ---===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_TOPOPS_H
#define TESSERA_TOP_DIALECT_IR_TOPOPS_H

#include "top_dialect/IR/TopConstOps.h"
#include "top_dialect/IR/TopConvOps.h"
#include "top_dialect/IR/TopElementwiseOps.h"
#include "top_dialect/IR/TopReduceOps.h"
#include "top_dialect/IR/TopShapeOps.h"

#endif // TESSERA_TOP_DIALECT_IR_TOPOPS_H
