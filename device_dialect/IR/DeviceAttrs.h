//===- DeviceAttrs.h - Layout and copy region attributes --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_IR_DEVICEATTRS_H
#define TESSERA_DEVICE_DIALECT_IR_DEVICEATTRS_H

#include "device_dialect/IR/DeviceDialect.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/TensorEncoding.h"
#include "top_dialect/IR/TopAttrs.h"

#define GET_ATTRDEF_CLASSES
#include "device_dialect/IR/DeviceAttrs.h.inc"

#endif // TESSERA_DEVICE_DIALECT_IR_DEVICEATTRS_H
