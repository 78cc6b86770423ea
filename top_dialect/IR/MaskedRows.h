//===- MaskedRows.h - Attention of queries without a key --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_MASKEDROWS_H
#define TESSERA_TOP_DIALECT_IR_MASKEDROWS_H

#include "mlir/IR/Operation.h"

namespace tessera::top {

/// Attribute of top.attention and device.attention that sets a row to 0 if all its scores are -inf, i.e. if the query
/// may not attend to any key. Without it the row is NaN, as softmax defines it.
inline constexpr llvm::StringLiteral kZeroMaskedRowsAttr = "zeroMaskedRows";

inline bool zeroesMaskedRows(mlir::Operation *attention) { return attention->hasAttr(kZeroMaskedRowsAttr); }

inline void setZeroMaskedRows(mlir::Operation *attention, bool isZero = true) {
  if (isZero) {
    attention->setAttr(kZeroMaskedRowsAttr, mlir::UnitAttr::get(attention->getContext()));
  }
}

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_MASKEDROWS_H
