//===- DeviceOps.h - Every op of the device dialect -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Files that need only one family include that family's header instead.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_IR_DEVICEOPS_H
#define TESSERA_DEVICE_DIALECT_IR_DEVICEOPS_H

#include "device_dialect/IR/DeviceComputeOps.h"
#include "device_dialect/IR/DeviceMoveOps.h"

#endif // TESSERA_DEVICE_DIALECT_IR_DEVICEOPS_H
