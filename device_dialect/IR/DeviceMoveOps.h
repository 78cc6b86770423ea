//===- DeviceMoveOps.h - Moves, indexing, resize, order ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_IR_DEVICEMOVEOPS_H
#define TESSERA_DEVICE_DIALECT_IR_DEVICEMOVEOPS_H

#include "device_dialect/IR/DeviceAttrs.h"
#include "device_dialect/IR/DeviceInterfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "top_dialect/IR/TopAttrs.h"

#include "device_dialect/IR/DeviceMoveEnums.h.inc"

#define GET_OP_CLASSES
#include "device_dialect/IR/DeviceMoveOps.h.inc"

#endif // TESSERA_DEVICE_DIALECT_IR_DEVICEMOVEOPS_H
