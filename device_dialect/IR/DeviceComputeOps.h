//===- DeviceComputeOps.h - Convolution, matmul, pool, map ... --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_IR_DEVICECOMPUTEOPS_H
#define TESSERA_DEVICE_DIALECT_IR_DEVICECOMPUTEOPS_H

#include "device_dialect/IR/DeviceAttrs.h"
#include "device_dialect/IR/DeviceInterfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "top_dialect/IR/TopAttrs.h"

#include "device_dialect/IR/DeviceComputeEnums.h.inc"

#define GET_OP_CLASSES
#include "device_dialect/IR/DeviceComputeOps.h.inc"

#endif // TESSERA_DEVICE_DIALECT_IR_DEVICECOMPUTEOPS_H
