//===- Epilogue.h - Storing elements through an epilogue region -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_EPILOGUE_H
#define TESSERA_CODEGEN_KERNELS_EPILOGUE_H

#include "codegen/Kernels/LoopNest.h"

#include "device_dialect/IR/DeviceInterfaces.h"

namespace tessera::kernels {

/// Stores the elements of result 0 of an op with EpilogueInterface.
class EpilogueStore {
public:
  EpilogueStore(KernelBuilder &kb, device::EpilogueInterface op);

  /// Passes |accumulators| (register type) through the epilogue and stores them at the logical
  /// |indices|. With a |laneDim| >= 0 they are a vector whose lanes move along that dim from there, and
  /// |mask| (may be null) tells the active ones. With |padding| lanes beyond the mask are stored as
  /// zeros: for the last channel block of a blocked result with lanes along dim 1. |aligned|: lanes begin at multiples
  /// of their number, rows too.
  void store(mlir::Value accumulators, llvm::ArrayRef<mlir::Value> indices, int64_t laneDim, mlir::Value mask,
             bool padding = false, bool aligned = false);

private:
  mlir::Value loadExtra(unsigned operand, llvm::ArrayRef<mlir::Value> indices, int64_t laneDim, const VectorStep &step);

  KernelBuilder &kb;
  device::EpilogueInterface op;
};

/// |value|, in registers, through the epilogue of an op without extra operands, but for the rounding that storing does.
mlir::Value applyEpilogue(KernelBuilder &kb, device::EpilogueInterface op, mlir::Value value);

/// |value| of |from|'s register type as |to|, a register type at least as wide; unsigned integers
/// extend with zeros.
mlir::Value convertElement(KernelBuilder &kb, mlir::Value value, mlir::Type from, mlir::Type to);

/// Elements between neighbours of |type| along logical dim |dim|; lanes of a blocked channel dim have 1.
int64_t laneStride(mlir::RankedTensorType type, int64_t dim);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_EPILOGUE_H
