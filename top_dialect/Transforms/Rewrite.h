//===- Rewrite.h - Linear driver of the Top passes --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Every Top pass is one walk over the ops in program order. Operands are final when their users are visited, so chains
// collapse without a worklist, and the cost is linear in the number of ops.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_TOP_DIALECT_TRANSFORMS_REWRITE_H
#define TESSERA_TOP_DIALECT_TRANSFORMS_REWRITE_H

#include "mlir/IR/PatternMatch.h"

namespace tessera::top {

/// Inspects one op and may replace it. A visitor
/// - inserts new ops before the visited one (the rewriter's insertion point);
/// - erases at most the visited op and ops before it (as the functions below do);
/// - returns whether it changed anything.
using Visitor = llvm::function_ref<bool(mlir::Operation *, mlir::RewriterBase &)>;

/// Visits each op nested in `root` once, in program order: inner regions before their op, and ops that a visit creates
/// immediately after it. Dead ops are erased instead. A visitor must not create new ops endlessly. Returns the number
/// of visits that changed something.
int64_t rewriteForward(mlir::Operation *root, Visitor visit);

/// Replaces `root` by `results` (one per result, with equal types), and erases it and ops that only it used. For
/// constants and values that exist already: they keep their node names, and take the tensor name of `root` only if they
/// do not have one.
void replaceAndErase(mlir::RewriterBase &rewriter, mlir::Operation *root, mlir::ValueRange results);

/// Replaces `root` and the ops erased with it by the op `by`, which does the work of all of them. `by` takes the tensor
/// names of `root` and the node names of all replaced ops, in a fused location. This location also contains the
/// previous location of `by`, unless that was the location of `root`.
void replaceFused(mlir::RewriterBase &rewriter, mlir::Operation *root, mlir::Operation *by);

/// Erases `op` if it is dead and, transitively, producers that lose their last use. Appends the locations of the erased
/// ops, except constants, to `locations` if given.
void eraseDeadChain(mlir::RewriterBase &rewriter, mlir::Operation *op,
                    llvm::SmallVectorImpl<mlir::Location> *locations = nullptr);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_TRANSFORMS_REWRITE_H
