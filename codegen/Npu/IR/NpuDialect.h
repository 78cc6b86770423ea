//===- NpuDialect.h - Decisions of the NPU's compiler -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_IR_NPUDIALECT_H
#define TESSERA_CODEGEN_NPU_IR_NPUDIALECT_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"

#include "codegen/Npu/IR/NpuDialect.h.inc"
#include "codegen/Npu/IR/NpuEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "codegen/Npu/IR/NpuAttrs.h.inc"

#endif // TESSERA_CODEGEN_NPU_IR_NPUDIALECT_H
