//===- BlockMatMuls.h - Matmuls of quantised rows and blocks of weights ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_WEIGHTS_BLOCKMATMULS_H
#define TESSERA_QUANT_TRANSFORMS_WEIGHTS_BLOCKMATMULS_H

#include "top_dialect/IR/TopOps.h"

namespace tessera::quant {

/// Returns true if the right operand of `op` is dequantised constant integers that rewriteToBlockMatMul() can multiply:
/// i8 with a zero point of 0 and, for each block along K or for each column, one scale and optionally one addend.
bool hasBlockWeights(mlir::Operation *op);

/// Replaces the result of `op`, for which hasBlockWeights() holds, by that of a top.block_matmul, which it returns, and
/// the ops of the bias and activation. Integers with a scale per column only get the same scale for every block of
/// `groupSize` weights.
mlir::Operation *rewriteToBlockMatMul(top::MatMulOp op, int64_t groupSize);

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_WEIGHTS_BLOCKMATMULS_H
