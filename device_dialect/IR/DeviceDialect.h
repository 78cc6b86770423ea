//===- DeviceDialect.h - The device dialect's class -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_IR_DEVICEDIALECT_H
#define TESSERA_DEVICE_DIALECT_IR_DEVICEDIALECT_H

#include "mlir/IR/Dialect.h"

#include "device_dialect/IR/DeviceDialect.h.inc"

#endif // TESSERA_DEVICE_DIALECT_IR_DEVICEDIALECT_H
