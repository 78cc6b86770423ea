//===- MaskedRows.h - Attention of queries without a key --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_MASKEDROWS_H
#define TESSERA_TOP_DIALECT_IR_MASKEDROWS_H

#include "mlir/IR/Operation.h"

namespace tessera::top {

/// The attribute of top.attention and device.attention by which a row whose scores are all -inf, i.e. a query that may
/// see no key, is 0. Without it the row is NaN, as softmax defines it.
inline constexpr llvm::StringLiteral kZeroMaskedRowsAttr = "zeroMaskedRows";

inline bool zeroesMaskedRows(mlir::Operation *attention) { return attention->hasAttr(kZeroMaskedRowsAttr); }

inline void setZeroMaskedRows(mlir::Operation *attention, bool isZero = true) {
  if (isZero) {
    attention->setAttr(kZeroMaskedRowsAttr, mlir::UnitAttr::get(attention->getContext()));
  }
}

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_MASKEDROWS_H
