//===- TopDialect.h - The Top dialect class ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/Dialect.h"

#include <memory>

namespace tessera::top {
class WeightStore;
} // namespace tessera::top

#include "top_dialect/IR/TopDialect.h.inc"
