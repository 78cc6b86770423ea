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

  /// Applies the epilogue to |accumulators| (register type) and stores the results at the logical |indices|. With
  /// |laneDim| >= 0, |accumulators| is a vector whose lanes advance along that dim, and |mask| (may be null) selects
  /// the active lanes. |padding| stores zeros in lanes beyond the mask, for the last channel block of a blocked result
  /// with lanes along dim 1. |aligned| promises that the lanes and the rows begin at multiples of the lane count.
  void store(mlir::Value accumulators, llvm::ArrayRef<mlir::Value> indices, int64_t laneDim, mlir::Value mask,
             bool padding = false, bool aligned = false);

private:
  mlir::Value loadExtra(unsigned operand, llvm::ArrayRef<mlir::Value> indices, int64_t laneDim, const VectorStep &step);

  KernelBuilder &kb;
  device::EpilogueInterface op;
};

/// Returns true if each size of each epilogue operand of |op| is known to be 1 or the size of the result.
bool broadcastsProvably(device::EpilogueInterface op);

/// Applies the epilogue of an op without extra operands to |value| in registers; omits the rounding that storing
/// performs.
mlir::Value applyEpilogue(KernelBuilder &kb, device::EpilogueInterface op, mlir::Value value);

/// Converts |value| from the register type of |from| to |to|, a register type at least as wide. Unsigned integers are
/// zero-extended.
mlir::Value convertElement(KernelBuilder &kb, mlir::Value value, mlir::Type from, mlir::Type to);

/// Returns the distance in elements between neighbours of |type| along logical dim |dim|; it is 1 for a blocked channel
/// dim.
Dim laneStride(mlir::RankedTensorType type, int64_t dim);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_EPILOGUE_H
