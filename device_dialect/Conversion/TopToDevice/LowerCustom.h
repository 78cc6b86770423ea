//===- LowerCustom.h - Lowering of custom operators -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_CONVERSION_TOPTODEVICE_LOWERCUSTOM_H
#define TESSERA_DEVICE_DIALECT_CONVERSION_TOPTODEVICE_LOWERCUSTOM_H

#include "mlir/IR/PatternMatch.h"

namespace tessera::device {

void populateCustomPatterns(mlir::RewritePatternSet &patterns);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_CONVERSION_TOPTODEVICE_LOWERCUSTOM_H
