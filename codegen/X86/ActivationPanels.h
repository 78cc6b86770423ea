//===- ActivationPanels.h - Panels packed at run time --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_ACTIVATIONPANELS_H
#define TESSERA_CODEGEN_X86_ACTIVATIONPANELS_H

#include "codegen/X86/MatMulGeometry.h"

namespace tessera::x86 {

/// Emits the packing of an activation B of a matmul to panels in scratch. Columns beyond N are zero.
class ActivationPanels {
public:
  ActivationPanels(device::MatMulOp op, KernelBuilder &kb, const MatMulGeometry &g);

  /// Packs the panel with the index |panel| of the matrix at |matrix| to |to|. |last|: it is the last panel.
  void pack(mlir::Value matrix, mlir::Value panel, mlir::Value to, bool last) const;

private:
  void packFloats(mlir::Value matrix, mlir::Value panel, mlir::Value to, int64_t blocks) const;
  void packTransposed(mlir::Value matrix, mlir::Value panel, mlir::Value to, bool last) const;
  void packBytes(mlir::Value matrix, mlir::Value panel, mlir::Value to, int64_t blocks) const;
  mlir::Value stepOfBytes(mlir::Value matrix, mlir::Value step, mlir::Value column, mlir::Value mask,
                          int64_t count) const;
  void storeStep(mlir::Value step, mlir::Value to, mlir::Value index, int64_t block, int64_t blocks) const;
  mlir::Value laneOffsets(int64_t lanes, int64_t stride) const;
  int64_t blocksOf(bool last) const { return last ? g.columns.panels.lastBlocks : g.columns.panels.blocks; }

  KernelBuilder &kb;
  const MatMulGeometry &g;
  mlir::Type element;    ///< of B in memory
  const bool transposed; ///< B is stored as [n, k]
};

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_ACTIVATIONPANELS_H
