//===- TopToDevice.h - Conversion from Top to device ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_CONVERSION_TOPTODEVICE_TOPTODEVICE_H
#define TESSERA_DEVICE_DIALECT_CONVERSION_TOPTODEVICE_TOPTODEVICE_H

#include "mlir/Pass/Pass.h"

namespace tessera::device {

#define GEN_PASS_DECL_CONVERTTOPTODEVICEPASS
#define GEN_PASS_REGISTRATION
#include "device_dialect/Conversion/TopToDevice/Passes.h.inc"

/// Returns true if a function of Top ops computes with integers that stand for floats, so that its floats are exact
/// (Exact.h).
bool computesIntegers(mlir::Operation *function);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_CONVERSION_TOPTODEVICE_TOPTODEVICE_H
