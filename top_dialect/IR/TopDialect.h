//===- TopDialect.h - The Top dialect class ---===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_TOPDIALECT_H
#define TESSERA_TOP_DIALECT_IR_TOPDIALECT_H

#include "mlir/IR/Dialect.h"

#include <memory>

namespace tessera::top {
class WeightStore;
} // namespace tessera::top

#include "top_dialect/IR/TopDialect.h.inc"

#endif // TESSERA_TOP_DIALECT_IR_TOPDIALECT_H
