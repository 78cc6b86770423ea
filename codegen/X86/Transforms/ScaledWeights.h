//===- ScaledWeights.h - Scales of integer weights --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_TRANSFORMS_SCALEDWEIGHTS_H
#define TESSERA_CODEGEN_X86_TRANSFORMS_SCALEDWEIGHTS_H

#include "device_dialect/IR/DeviceComputeOps.h"

namespace tessera::x86 {

/// Returns the scales of a convolution's or matmul's integer weights; null if it has none, and for other ops.
mlir::Value scalesOf(mlir::Operation *op);

/// Removes the scales of |op|, which must have some, after their values were stored elsewhere.
void dropScales(mlir::Operation *op);

/// Replaces constant integer weights and their scales by f32 weights.
void dequantiseWeights(mlir::Operation *op);

/// Moves one constant scale per channel to the beginning of the epilogue, which multiplies the sums by it and then adds
/// the bias.
void scaleInEpilogue(mlir::Operation *op);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_TRANSFORMS_SCALEDWEIGHTS_H
