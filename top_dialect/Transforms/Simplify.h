//===- Simplify.h - Removes and simplifies trivial ops ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_TRANSFORMS_SIMPLIFY_H
#define TESSERA_TOP_DIALECT_TRANSFORMS_SIMPLIFY_H

#include "mlir/IR/PatternMatch.h"

namespace tessera::top {

/// Replaces `op` by a cheaper value that equals its only result, if there is one: an operand, or the result of a
/// simpler new op. Returns true if it did; `op` is erased then.
bool simplify(mlir::Operation *op, mlir::RewriterBase &rewriter);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_TRANSFORMS_SIMPLIFY_H
