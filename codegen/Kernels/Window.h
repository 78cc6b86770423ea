//===- Window.h - Sliding windows of convolutions and pools -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_WINDOW_H
#define TESSERA_CODEGEN_KERNELS_WINDOW_H

#include "codegen/Kernels/KernelBuilder.h"

namespace tessera::kernels {

/// One spatial dim of a sliding window.
struct WindowDim {
  Dim input, output;
  int64_t kernel, stride, dilation, padBegin, padEnd;

  /// Returns the taps [first, last) of the window at output |position| (i64) that fall inside the input.
  std::pair<mlir::Value, mlir::Value> validTaps(KernelBuilder &kb, mlir::Value position) const;
  /// Returns the number of taps inside the padded input, by which an average that includes padding is divided.
  mlir::Value paddedTaps(KernelBuilder &kb, mlir::Value position) const;
  /// Returns the output positions [first, second) whose window lies inside the input.
  std::pair<Dim, Dim> interior() const;
  /// Returns true if all windows are known to lie inside the input.
  bool isAllInterior() const;
  /// Returns the input position of |tap| of the window at |position|; it may lie outside the input.
  mlir::Value inputAt(KernelBuilder &kb, mlir::Value position, mlir::Value tap) const;

private:
  std::pair<mlir::Value, mlir::Value> tapsBelow(KernelBuilder &kb, mlir::Value position, Dim low, Dim high) const;
};

/// Returns |size| as an i32.
mlir::Value narrowIndex(KernelBuilder &kb, Dim size);

/// Returns the spatial dims of x [N, C, D...] and y, with |kernel| etc. as in device.conv and device.pool.
llvm::SmallVector<WindowDim> windowDims(mlir::RankedTensorType x, mlir::RankedTensorType y,
                                        llvm::ArrayRef<int64_t> kernel, llvm::ArrayRef<int64_t> strides,
                                        llvm::ArrayRef<int64_t> pads, llvm::ArrayRef<int64_t> dilations);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_WINDOW_H
