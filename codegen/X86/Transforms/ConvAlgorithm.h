//===- ConvAlgorithm.h - Chooses the kernel of a convolution ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_TRANSFORMS_CONVALGORITHM_H
#define TESSERA_CODEGEN_X86_TRANSFORMS_CONVALGORITHM_H

#include "codegen/X86/IR/PackedWeights.h"
#include "codegen/X86/Transforms/AmxTiles.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"

namespace tessera::x86 {

/// The properties of a chip that determine the kernels and the packing of weights.
struct PackingTarget {
  int64_t vectorBytes = 64; ///< bytes of a vector register
  bool byteDots = false;    ///< has dot products of four unsigned and four signed bytes
  bool bf16Dots = false;    ///< has dot products of two bf16, summed in f32
  bool amx = false;         ///< has AMX tiles of bytes and of bf16
};

/// The kernel of one convolution.
struct ConvChoice {
  ConvAlgorithm algorithm;
  int64_t outputTile = 0; ///< m of F(m x m, 3 x 3)
};

/// Returns true for i8 and ui8.
bool isByte(mlir::Type type);

/// Returns true for types that multiply i8 weights exactly: bytes, four at a time, and i16, two at a time.
bool isIntegerOperand(mlir::Type type);

/// Returns the number of AMX tile operations per chunk of K: two for i16, one each for the low and the high bytes.
inline int64_t tileProducts(mlir::Type x) { return x.isSignlessInteger(16) ? 2 : 1; }

/// Returns true if elements |x| and |w| are multiplied as pairs of bf16, without being widened.
inline bool hasBf16Dots(mlir::Type x, mlir::Type w, PackingTarget target) {
  return target.bf16Dots && x.isBF16() && w.isBF16();
}

/// Returns true if a register tile supports |x|, weights of element type |w|, |bias| (may be null) and |y|.
bool hasTileTypes(mlir::Value x, mlir::Type w, mlir::Value bias, mlir::Value y);

/// Returns the cheapest algorithm for |conv| on |target|, or nullopt if no fast kernel supports it. Its weights must
/// not be packed yet. |winograd| allows Winograd.
std::optional<ConvChoice> chooseConvAlgorithm(device::ConvOp conv, PackingTarget target, bool winograd);

/// Returns the algorithm that x86-assign-layouts chose; null for a generic convolution, and after its weights are
/// packed.
inline AlgorithmAttr algorithmOf(device::ConvOp conv) {
  return conv->getAttrOfType<AlgorithmAttr>(X86Dialect::kAlgorithmAttr);
}

/// Returns true if a height or width is symbolic.
bool hasOpenPlanes(device::ConvOp conv);

/// Returns true if |op|, a convolution or matmul, multiplies floats by integer weights.
bool hasIntegerWeights(mlir::Operation *op);

/// Returns the chunks of K with which AMX tiles multiply |conv|, a direct convolution with weights in a channels-last
/// |order|; nullopt if vector instructions are faster or AMX does not support it.
std::optional<KSplit> amxTilesOf(device::ConvOp conv, PackedOrder order, PackingTarget target);

/// Returns the number of output channel blocks per panel of the weights for |choice|.
int64_t choosePanelBlocks(device::ConvOp conv, ConvChoice choice, PackingTarget target);

/// Returns the number of neighbouring groups that together fill whole blocks: 1 if single groups do, 0 if too many
/// would have to be merged.
int64_t groupsToMerge(device::ConvOp conv);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_TRANSFORMS_CONVALGORITHM_H
