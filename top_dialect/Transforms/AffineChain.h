//===- AffineChain.h - Per-channel arithmetic after an op ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_TRANSFORMS_AFFINECHAIN_H
#define TESSERA_TOP_DIALECT_TRANSFORMS_AFFINECHAIN_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/PatternMatch.h"
#include <optional>
#include <vector>

namespace tessera::top {

/// y = scale[c] * start + shift[c], computed by a chain of ops. Each op is the only user of the previous one.
struct AffineChain {
  /// The common type of the start and of all members.
  mlir::RankedTensorType type;
  /// The dim of the channels, and the number of channels.
  int64_t axis = 1, channels = 0;
  /// The members in order; never empty.
  llvm::SmallVector<mlir::Operation *> ops;
  std::vector<double> scale, shift;
  /// True if a member scales (batch_norm, mul, div) instead of only adding.
  bool scales = false;
};

/// Returns the longest chain that starts at `start`, consisting of additions only if `addsOnly`; nothing if there is
/// none. If `first` is given, that user of `start` begins the chain, even if there are other users.
std::optional<AffineChain> collectChain(mlir::Value start, int64_t axis, bool addsOnly,
                                        mlir::Operation *first = nullptr);

/// Returns the dim of the output channels of a conv, conv_transpose or matmul that can absorb a chain: its weight and
/// bias are constant, and it does not have an activation. Returns nothing for other ops.
std::optional<int64_t> foldableChannelAxis(mlir::Operation *op);

/// Replaces the chain after `op`, for which foldableChannelAxis holds, by `op` with new weights and bias.
void foldIntoWeights(mlir::RewriterBase &rewriter, mlir::Operation *op, const AffineChain &chain);

/// Replaces a chain that begins with a batch_norm by one mul and one add.
void replaceByMulAdd(mlir::RewriterBase &rewriter, const AffineChain &chain);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_TRANSFORMS_AFFINECHAIN_H
