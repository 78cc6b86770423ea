//===- ConvAlgorithm.h - Which kernel a convolution gets --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_TRANSFORMS_CONVALGORITHM_H
#define TESSERA_CODEGEN_X86_TRANSFORMS_CONVALGORITHM_H

#include "codegen/X86/Transforms/WeightPacking.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"

namespace tessera::x86 {

/// The decision for one convolution.
struct ConvChoice {
  device::ConvAlgorithm algorithm = device::ConvAlgorithm::generic;
  int64_t winogradTile = 0; ///< m of F(m x m, 3 x 3)
};

/// i8 or ui8.
bool isByte(mlir::Type type);

/// What i8 weights are multiplied with exactly: bytes, four at a time, or i16, two at a time.
bool isIntegerOperand(mlir::Type type);
inline int64_t elementsPerStep(mlir::Type type) { return isByte(type) ? 4 : isIntegerOperand(type) ? 2 : 1; }

/// The forms that packed weights of integers of type |x| may have.
llvm::ArrayRef<PackedForm> packedForms(mlir::Type x);

/// Types of register-tiled products of |x| and |w| (element types), |bias| and |y|; |bias| may be null.
bool hasTileTypes(mlir::Value x, mlir::Type w, mlir::Value bias, mlir::Value y);

/// Channels of one block of the blocked layout.
inline constexpr int64_t kChannelBlock = 16;

/// What |conv| costs least with on a chip with registers of |vectorBytes|; generic when no fast kernel takes it. The
/// weights may be packed or not.
ConvChoice chooseConvAlgorithm(device::ConvOp conv, int64_t vectorBytes, bool winograd);

/// The counts of elements that packed weights of a [k, n] matrix multiplied with elements |a| may have.
llvm::SmallVector<int64_t> packedMatMulCounts(mlir::Type a, int64_t k, int64_t n);

/// Elements of the packed weights of |conv|, whose algorithm is chosen; more than one count may be allowed.
llvm::SmallVector<int64_t> packedWeightElements(device::ConvOp conv);

/// Whether |op|, a conv or matmul, multiplies floats with integer weights, packed or not.
bool hasIntegerWeights(mlir::Operation *op);

/// How such weights lie packed.
IntegerPanels integerPanels(device::ConvOp conv);
IntegerPanels integerPanels(device::MatMulOp matmul);

/// Whether the taps of a kernel row of |conv| are apart in memory.
bool hasDilatedRows(device::ConvOp conv);

/// Output channel blocks per panel of the weights for |choice|.
int64_t choosePanelBlocks(device::ConvOp conv, ConvChoice choice, int64_t vectorBytes);

/// Logical dims of the weights.
ConvWeightDims weightDims(device::ConvOp conv);

/// Number of neighbouring groups that together fill whole blocks; 1 when groups do already, 0 when none fit.
int64_t groupsToMerge(device::ConvOp conv);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_TRANSFORMS_CONVALGORITHM_H
