//===- NpuOps.h - Programs of the NPU ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_IR_NPUOPS_H
#define TESSERA_CODEGEN_NPU_IR_NPUOPS_H

#include "bmodel/npu/chip.h"
#include "codegen/Npu/IR/CommandCode.h"
#include "codegen/Npu/IR/NpuDialect.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"

#include "codegen/Npu/IR/NpuOpsEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "codegen/Npu/IR/NpuTypes.h.inc"

#define GET_OP_CLASSES
#include "codegen/Npu/IR/NpuOps.h.inc"

#endif // TESSERA_CODEGEN_NPU_IR_NPUOPS_H
