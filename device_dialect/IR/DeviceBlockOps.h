//===- DeviceBlockOps.h - Ops on blocks of quantised numbers ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_IR_DEVICEBLOCKOPS_H
#define TESSERA_DEVICE_DIALECT_IR_DEVICEBLOCKOPS_H

#include "device_dialect/IR/DeviceInterfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_OP_CLASSES
#include "device_dialect/IR/DeviceBlockOps.h.inc"

#endif // TESSERA_DEVICE_DIALECT_IR_DEVICEBLOCKOPS_H
