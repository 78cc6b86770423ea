//===- ChooseDirectStores.h - Stores computed results directly --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_DECISIONS_CHOOSEDIRECTSTORES_H
#define TESSERA_CODEGEN_NPU_DECISIONS_CHOOSEDIRECTSTORES_H

#include "codegen/Npu/Decisions/DirectStore.h"
#include "device_dialect/IR/DeviceOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::npu {

/// Returns the last op that writes a part of |value|, or null if the value is available from the beginning.
mlir::Operation *lastWriterOf(mlir::Value value);

/// A direct store of a value to a result of the model, and its cost. |ownCycles| is the cost of storing the value at
/// its own address instead.
struct DirectStoreCost {
  mlir::Value value;
  DirectStore directStore;
  double cycles, ownCycles;
};
/// Returns the direct stores that replace moving |piece|, one per op that computes a part of its source. Returns
/// nothing if one of these ops does not store images or would need too many store commands.
std::optional<std::vector<DirectStoreCost>> directStoreCosts(mlir::func::FuncOp function, device::CopyOp copy,
                                                             device::PieceAttr piece, const Chip &chip);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_DECISIONS_CHOOSEDIRECTSTORES_H
