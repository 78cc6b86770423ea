//===- ScaledWeights.h - Scales of integer weights --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_TRANSFORMS_SCALEDWEIGHTS_H
#define TESSERA_CODEGEN_X86_TRANSFORMS_SCALEDWEIGHTS_H

#include "device_dialect/IR/DeviceComputeOps.h"

namespace tessera::x86 {

/// The scales of a conv's or matmul's integer weights; null without, and for other ops.
mlir::Value scalesOf(mlir::Operation *op);

/// Removes the scales of an op that has some: they have found their place.
void dropScales(mlir::Operation *op);

/// Puts f32 weights in the place of constant integers and their scales.
void dequantiseWeights(mlir::Operation *op);

/// One scale per channel: the sums are multiplied by it at the beginning of the epilogue, where the bias is added then.
void scaleInEpilogue(mlir::Operation *op);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_TRANSFORMS_SCALEDWEIGHTS_H
