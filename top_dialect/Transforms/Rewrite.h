//===- Rewrite.h - The linear driver of the Top passes ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Every Top pass is one walk over the ops in program order: operands are final when their users
// are visited, so chains collapse without a worklist and the cost stays linear in the node count.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_TOP_DIALECT_TRANSFORMS_REWRITE_H
#define TESSERA_TOP_DIALECT_TRANSFORMS_REWRITE_H

#include "mlir/IR/PatternMatch.h"

namespace tessera::top {

/// Looks at one op and may replace it. Contract of a visitor:
/// - new ops are inserted before the visited one (where the rewriter stands);
/// - it erases at most the visited op and ops before it (the functions below do that);
/// - it returns whether it changed anything.
using Visitor = llvm::function_ref<bool(mlir::Operation *, mlir::RewriterBase &)>;

/// Visits each op nested in `root` once, in program order, inner regions before the op that holds
/// them, ops that a visit creates right after it; dead ops are erased instead of visited. A visitor
/// that creates ops must come to an end on them. Returns how many visits changed something.
int64_t rewriteForward(mlir::Operation *root, Visitor visit);

/// Replaces `root` by `results` (one per result; the types must agree), erases it and the ops that
/// only served it. For values that exist already, or constants: they keep their node names, and
/// take the tensor name of `root` only if they have none.
void replaceAndErase(mlir::RewriterBase &rewriter, mlir::Operation *root, mlir::ValueRange results);

/// As above, for an op that does the work of `root` and of the ops that die with it: it takes
/// their node names (a fused location; its own too, unless it was created with that of `root`), and
/// the tensor names of `root`.
void replaceFused(mlir::RewriterBase &rewriter, mlir::Operation *root, mlir::Operation *by);

/// Erases `op` and, transitively, operands' ops that lose their last use, if it is dead.
/// Appends the locations of the erased ops, constants excepted, to `locations` when given.
void eraseDeadChain(mlir::RewriterBase &rewriter, mlir::Operation *op,
                    llvm::SmallVectorImpl<mlir::Location> *locations = nullptr);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_TRANSFORMS_REWRITE_H
