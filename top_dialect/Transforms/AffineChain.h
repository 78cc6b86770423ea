//===- AffineChain.h - Per-channel arithmetic after an op ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_TRANSFORMS_AFFINECHAIN_H
#define TESSERA_TOP_DIALECT_TRANSFORMS_AFFINECHAIN_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/PatternMatch.h"
#include <optional>
#include <vector>

namespace tessera::top {

/// y = scale[c] * start + shift[c], written as a chain of ops of which each is the only user of
/// the one before.
struct AffineChain {
  /// The type of the start and of every member.
  mlir::RankedTensorType type;
  /// The dim of the channels, and their number.
  int64_t axis = 1, channels = 0;
  /// The members, in order; never empty.
  llvm::SmallVector<mlir::Operation *> ops;
  std::vector<double> scale, shift;
  /// Whether a member scales (batch_norm, mul, div), not only adds.
  bool scales = false;
};

/// The longest chain over `start`, of additions only if `addsOnly`; none if it has no member.
/// With `first`, that user of `start` begins the chain even if there are other users.
std::optional<AffineChain> collectChain(mlir::Value start, int64_t axis, bool addsOnly,
                                        mlir::Operation *first = nullptr);

/// The dim of the output channels of conv, conv_transpose or matmul, if the op can take a chain:
/// constant weights and bias, no activation yet. None for other ops.
std::optional<int64_t> foldableChannelAxis(mlir::Operation *op);

/// Replaces the chain after `op` (foldableChannelAxis holds) by the op with other weights and bias.
void foldIntoWeights(mlir::RewriterBase &rewriter, mlir::Operation *op, const AffineChain &chain);

/// Replaces a chain that begins with a batch_norm by one mul and one add.
void replaceByMulAdd(mlir::RewriterBase &rewriter, const AffineChain &chain);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_TRANSFORMS_AFFINECHAIN_H
