//===- ConvAlgorithm.h - Which kernel a convolution gets --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_TRANSFORMS_CONVALGORITHM_H
#define TESSERA_CODEGEN_X86_TRANSFORMS_CONVALGORITHM_H

#include "codegen/X86/IR/PackedWeights.h"
#include "codegen/X86/Transforms/MatrixTiles.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"

namespace tessera::x86 {

/// What of a chip decides which kernel multiplies and how weights are packed.
struct PackingTarget {
  int64_t vectorBytes = 64; ///< of a register
  bool byteDots = false;    ///< multiplies unsigned by signed bytes and sums four products
  bool bf16Dots = false;    ///< multiplies bf16 and sums two products in f32
  bool amx = false;         ///< multiplies tiles of bytes and of bf16
};

/// The decision for one convolution.
struct ConvChoice {
  ConvAlgorithm algorithm;
  int64_t outputTile = 0; ///< m of F(m x m, 3 x 3)
};

/// i8 or ui8.
bool isByte(mlir::Type type);

/// What i8 weights are multiplied with exactly: bytes, four at a time, or i16, two at a time.
bool isIntegerOperand(mlir::Type type);

/// Products of tiles that a chunk of K takes: i16 are multiplied as low and as high bytes.
inline int64_t tileProducts(mlir::Type x) { return x.isSignlessInteger(16) ? 2 : 1; }

/// Whether |x| and |w| (element types) are multiplied two at a time as they are, without being widened.
inline bool hasBf16Dots(mlir::Type x, mlir::Type w, PackingTarget target) {
  return target.bf16Dots && x.isBF16() && w.isBF16();
}

/// Types of register-tiled products of |x| and |w| (element types), |bias| and |y|; |bias| may be null.
bool hasTileTypes(mlir::Value x, mlir::Type w, mlir::Value bias, mlir::Value y);

/// What |conv| costs least with on |target|; nothing when no fast kernel takes it. Its weights are not packed.
std::optional<ConvChoice> chooseConvAlgorithm(device::ConvOp conv, PackingTarget target, bool winograd);

/// The algorithm that x86-assign-layouts chose; null for a generic convolution and once the weights are packed.
inline AlgorithmAttr algorithmOf(device::ConvOp conv) {
  return conv->getAttrOfType<AlgorithmAttr>(X86Dialect::kAlgorithmAttr);
}

/// Whether |op|, a conv or matmul, multiplies floats with integer weights.
bool hasIntegerWeights(mlir::Operation *op);

/// The chunks of K by which tiles of AMX multiply |conv|, a direct convolution whose weights are in an |order| that has
/// channels last, where they are faster than vectors.
std::optional<ChunkedDepth> matrixTilesOf(device::ConvOp conv, PackedOrder order, PackingTarget target);

/// Output channel blocks per panel of the weights for |choice|.
int64_t choosePanelBlocks(device::ConvOp conv, ConvChoice choice, PackingTarget target);

/// Number of neighbouring groups that together fill whole blocks; 1 when groups do already, 0 when none fit.
int64_t groupsToMerge(device::ConvOp conv);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_TRANSFORMS_CONVALGORITHM_H
