//===- ElementwiseParts.h - Operands of element-wise ops --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_ELEMENTWISE_ELEMENTWISEPARTS_H
#define TESSERA_CODEGEN_NPU_EMISSION_ELEMENTWISE_ELEMENTWISEPARTS_H

#include "codegen/Npu/Emission/EmissionContext.h"

namespace tessera::npu {

/// Views of a result and of the operands that broadcast to it: one row of views per part.
using PlacedParts = llvm::SmallVector<llvm::SmallVector<TileView>>;

/// Places |values|, the result first, as parts with dims n, c, h, w. The parts follow the tensors' channels if that
/// keeps some of the values in local memory; otherwise they are cut such that all lanes have work. |cyclesEach|: cycles
/// of the vector unit per vector.
llvm::Expected<PlacedParts> placeParts(llvm::ArrayRef<mlir::Value> values, double cyclesEach, EmissionContext &context);

/// Returns the granule of an element-wise op's tiles: every dim can be cut, channels into multiples of the lanes.
inline Shape elementwiseGranule(const Chip &chip) { return {{1, chip.lanes, 1, 1}}; }

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_ELEMENTWISE_ELEMENTWISEPARTS_H
