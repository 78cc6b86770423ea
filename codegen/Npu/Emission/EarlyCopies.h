//===- EarlyCopies.h - Parts of copies that go with producers ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// A copy that only makes a result of the model need not wait until all its sources are there: each of its pieces is
// moved behind the op that makes its source, or is stored by that op itself as the result wants it (npu.pieces).
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NPU_EMISSION_EARLYCOPIES_H
#define TESSERA_CODEGEN_NPU_EMISSION_EARLYCOPIES_H

#include "codegen/Npu/Stream.h"
#include "device_dialect/IR/DeviceOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::npu {
struct EmissionContext;

class EarlyCopies {
public:
  EarlyCopies(mlir::func::FuncOp function, const Chip &chip);

  /// Whether a piece does not wait for the copy's turn.
  bool hoistsLoads(device::CopyOp copy, unsigned piece) const;
  /// Emits the pieces of results that can be moved out as soon as |op|, or what is folded into op |number|, has run:
  /// nobody writes there again.
  llvm::Error emitBehind(mlir::Operation *op, uint32_t number, EmissionContext &context) const;

private:
  using Piece = std::pair<mlir::Operation *, unsigned>;
  llvm::Error planStores(device::CopyOp copy, unsigned index, EmissionContext &context) const;

  mlir::func::FuncOp function;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<Piece>> behind; ///< by the op that makes the source
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_EARLYCOPIES_H
