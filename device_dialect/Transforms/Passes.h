//===- Passes.h - Passes on the device dialect ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_TRANSFORMS_PASSES_H
#define TESSERA_DEVICE_DIALECT_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace tessera::device {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "device_dialect/Transforms/Passes.h.inc"

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_TRANSFORMS_PASSES_H
