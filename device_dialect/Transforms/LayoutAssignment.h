//===- LayoutAssignment.h - Channel-blocked or row-major --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_TRANSFORMS_LAYOUTASSIGNMENT_H
#define TESSERA_DEVICE_DIALECT_TRANSFORMS_LAYOUTASSIGNMENT_H

#include "device_dialect/IR/DeviceComputeOps.h"

namespace tessera::device {

/// What a chip says about layouts.
struct LayoutPolicy {
  int64_t block; ///< channels of a block
  /// Whether elements of this type are ever blocked.
  llvm::function_ref<bool(mlir::Type)> canBlock;

  /// How the chip's kernel of a convolution reads x when it writes blocks; nothing where it has none that does.
  enum class ConvInput { RowMajor, Blocked };
  /// Asked once for each convolution whose x can be blocked, when x has its layout.
  llvm::function_ref<std::optional<ConvInput>(ConvOp)> chooseConv;
};

struct LayoutCounts {
  int64_t copies = 0;  ///< layout changes inserted
  int64_t blocked = 0; ///< results made channel-blocked
};

/// Gives each tensor of |function| a layout, in one walk in program order. Convolutions with a kernel for it write
/// blocks; ops that work in either layout follow their main input; everything else is row-major. Each operand that lies
/// otherwise than wanted is converted, once for a tensor.
LayoutCounts assignLayouts(mlir::Operation *function, const LayoutPolicy &policy);

/// Whether |value|, image-like, can lie in blocks.
bool canBlock(mlir::Value value, const LayoutPolicy &policy);

/// Moves an epilogue with operands that are no elements, rows or columns of y into a map behind the convolution.
void splitEpilogue(ConvOp conv);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_TRANSFORMS_LAYOUTASSIGNMENT_H
