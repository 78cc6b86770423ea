//===- DeviceInterfaces.h - What a device op can answer ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_IR_DEVICEINTERFACES_H
#define TESSERA_DEVICE_DIALECT_IR_DEVICEINTERFACES_H

#include "mlir/IR/OpDefinition.h"
#include "top_dialect/IR/TopInterfaces.h"

#include "device_dialect/IR/DeviceInterfaces.h.inc"

#endif // TESSERA_DEVICE_DIALECT_IR_DEVICEINTERFACES_H
