//===- PanelTile.h - Register tiles over panels of columns ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NATIVE_PANELTILE_H
#define TESSERA_CODEGEN_NATIVE_PANELTILE_H

#include "codegen/Native/KernelCompiler.h"
#include "device_dialect/IR/DeviceComputeOps.h"

namespace tessera::native {

/// Multiplies rows of a matrix by a panel of kColumns columns of another one. The panel has one vector of columns for
/// each term of the sums: f32 if the sums are, otherwise 16-bit integers. Each sum adds its terms in order.
class PanelTile {
public:
  static constexpr int64_t kRows = 4, kColumns = 16;

  /// |row| and |column|: element types of both matrices in memory.
  PanelTile(kernels::KernelBuilder &kb, mlir::Type row, mlir::Type column, mlir::Type sum, int64_t depth)
      : kb(kb), row(row), column(column), sum(sum), depth(depth) {}

  /// Returns true if the kernel's operands 0 and 1 and its result are row-major, not empty and of known sizes, and if
  /// panels compute sums of type |accumulator| from the operands' element types.
  static bool supports(kernels::KernelBuilder &kb, mlir::Type accumulator);

  mlir::Type panelElement() const;
  int64_t panelBytes() const;
  /// Stores |values|, columns in registers, to element |at| of the panel in scratch.
  void pack(mlir::Value values, mlir::Value at);
  /// Returns |sums|, one vector for each row, plus the products. |rows|: offset of each row from |base| in elements.
  /// |panel|: address of the panel, whose terms are |stride| elements apart.
  llvm::SmallVector<mlir::Value> multiply(mlir::Value base, llvm::ArrayRef<mlir::Value> rows, mlir::Value panel,
                                          int64_t stride, llvm::SmallVector<mlir::Value> sums);

private:
  mlir::Value product(mlir::Value factor, mlir::Value columns, mlir::Value sum);

  kernels::KernelBuilder &kb;
  mlir::Type row, column, sum;
  int64_t depth;
};

/// Emit |op| with panels and return true, or return false if the loop kernels have to compute it: open sizes, integer
/// weights with scales, few rows or channels, and sums of other types than f32 and i32.
bool emitPanelMatMul(kernels::KernelBuilder &kb, device::MatMulOp op);
bool emitPanelConv(kernels::KernelBuilder &kb, device::ConvOp op);

/// The KernelEmitter of a machine with fused multiply-adds and 32 registers of |vectors|: contractions use panels,
/// other ops the loop kernels.
mlir::FailureOr<KernelModule> emitPanelKernel(mlir::Operation *op, const kernels::VectorTarget &vectors,
                                              llvm::StringRef symbol, kernels::KernelFrame &frame);

} // namespace tessera::native

#endif // TESSERA_CODEGEN_NATIVE_PANELTILE_H
