//===- EarlyCopies.h - Parts of copies that run early -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// A copy that only writes a result of the model need not wait until all of its sources are computed. Each of its pieces
// is moved right after the op that computes its source, or that op stores it directly in the result's layout
// (npu.pieces).
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_NPU_EMISSION_MOVES_EARLYCOPIES_H
#define TESSERA_CODEGEN_NPU_EMISSION_MOVES_EARLYCOPIES_H

#include "codegen/Npu/Stream/CommandStream.h"
#include "device_dialect/IR/DeviceOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::npu {
struct EmissionContext;

/// Finds the pieces of copies that npu.pieces marks as `early` or `direct`.
class EarlyCopies {
public:
  EarlyCopies(mlir::func::FuncOp function, const Chip &chip);

  /// Returns true if a piece is not emitted with its copy, but earlier.
  bool hoistsLoads(device::CopyOp copy, unsigned piece) const;
  /// Emits the pieces that can be moved once |op| has run, because no later op writes their sources. |op| is op number
  /// |number| or is fused into it.
  llvm::Error emitBehind(mlir::Operation *op, uint32_t number, EmissionContext &context) const;

private:
  using Piece = std::pair<mlir::Operation *, unsigned>;
  llvm::Error planStores(device::CopyOp copy, unsigned index, EmissionContext &context) const;

  mlir::func::FuncOp function;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<Piece>> behind; ///< by the last op that writes the source
};

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_MOVES_EARLYCOPIES_H
