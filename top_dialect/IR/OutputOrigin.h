//===- OutputOrigin.h - The op that computes an output ---===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_OUTPUTORIGIN_H
#define TESSERA_TOP_DIALECT_IR_OUTPUTORIGIN_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/StringRef.h"

namespace tessera::top {

/// Returns "sigmoid" or "softmax" if that op computes all elements of |value|, whatever ops move them afterwards
/// ("softmax" for elements of both), and "none" for constants and function arguments; else "". Errors of probabilities
/// are measured as log-odds, and values that no op computes have none.
llvm::StringRef findOutputOrigin(mlir::Value value);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_OUTPUTORIGIN_H
