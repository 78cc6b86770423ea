//===- LayoutAssignment.h - Channel-blocked or row-major --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_TRANSFORMS_LAYOUTASSIGNMENT_H
#define TESSERA_DEVICE_DIALECT_TRANSFORMS_LAYOUTASSIGNMENT_H

#include "device_dialect/IR/DeviceComputeOps.h"

namespace tessera::device {

/// Layout rules of a chip.
struct LayoutPolicy {
  int64_t block; ///< channels per block
  /// Returns true if elements of this type may be blocked.
  llvm::function_ref<bool(mlir::Type)> canBlock;

  /// Layout of x that the chip's convolution kernel reads when it writes blocks; nothing if no such kernel exists.
  enum class ConvInput { RowMajor, Blocked };
  /// Called once for each convolution whose x can be blocked, after x has its layout.
  llvm::function_ref<std::optional<ConvInput>(ConvOp)> chooseConv;
};

struct LayoutCounts {
  int64_t copies = 0;  ///< layout changes inserted
  int64_t blocked = 0; ///< results that became channel-blocked
};

/// Assigns a layout to each tensor of |function|, in one walk in program order. Convolutions with a suitable kernel
/// write blocks; ops that support both layouts follow their main input; all other ops are row-major. Operands in
/// another layout than wanted are converted, once per tensor.
LayoutCounts assignLayouts(mlir::Operation *function, const LayoutPolicy &policy);

/// Returns true if |value| is an image-like tensor that can be blocked.
bool canBlock(mlir::Value value, const LayoutPolicy &policy);

/// Moves an epilogue with operands that the convolution's kernels cannot read into a map after the convolution.
void splitEpilogue(ConvOp conv);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_TRANSFORMS_LAYOUTASSIGNMENT_H
