//===- ElementwiseParts.h - Operands of element-wise ops --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_ELEMENTWISEPARTS_H
#define TESSERA_CODEGEN_NPU_EMISSION_ELEMENTWISEPARTS_H

#include "codegen/Npu/Emission/EmissionContext.h"

namespace tessera::npu {

/// Places of a result and of what broadcasts to it, one row of places a part.
using PlacedParts = llvm::SmallVector<llvm::SmallVector<TileView>>;

/// Places |values|, the result first, cut into parts that have n, c, h, w dims: by channels where some of the values
/// stay in local memory so, else such that all lanes have work. |cyclesEach|: of the vector unit, a vector.
llvm::Expected<PlacedParts> placeParts(llvm::ArrayRef<mlir::Value> values, double cyclesEach, EmissionContext &context);

/// What an element-wise op may be cut into: any dim, channels to whole lanes.
inline Shape elementwiseGranule(const Chip &chip) { return {{1, chip.lanes, 1, 1}}; }

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_ELEMENTWISEPARTS_H
