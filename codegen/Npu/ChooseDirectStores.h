//===- ChooseDirectStores.h - Results stored as they are made ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_CHOOSEDIRECTSTORES_H
#define TESSERA_CODEGEN_NPU_CHOOSEDIRECTSTORES_H

#include "codegen/Npu/DirectStore.h"
#include "device_dialect/IR/DeviceOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::npu {

/// The op after which all of a value is there; null: it is there from the beginning.
mlir::Operation *lastWriterOf(mlir::Value value);

/// A store of a value, as it is made, to a result of the model; and what it costs beside the one to the value's place.
struct DirectStoreCost {
  mlir::Value value;
  DirectStore directStore;
  double cycles, ownCycles;
};
/// What the ops that make a piece's source would store, so that the piece need not be moved. Nothing where one of them
/// cannot: it stores no images, or with too many commands.
std::optional<std::vector<DirectStoreCost>> directStoreCosts(mlir::func::FuncOp function, device::CopyOp copy,
                                                             device::PieceAttr piece, const Chip &chip);

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_CHOOSEDIRECTSTORES_H
