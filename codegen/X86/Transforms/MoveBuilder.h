//===- MoveBuilder.h - Builds copies and reshapes before an op ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_TRANSFORMS_MOVEBUILDER_H
#define TESSERA_CODEGEN_X86_TRANSFORMS_MOVEBUILDER_H

#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Pieces.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TensorTypes.h"

namespace tessera::x86 {

/// Builds copies and reshapes of row-major tensors before an op.
class MoveBuilder {
public:
  explicit MoveBuilder(mlir::Operation *op) : builder(op), loc(op->getLoc()) {}

  /// Returns |x| reshaped to |dims|; |x| itself if it already has them.
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> dims) {
    auto type = mlir::RankedTensorType::get(dims, typeOf(x).getElementType());
    return type == x.getType() ? x : mlir::Value(device::ReshapeOp::create(builder, loc, type, x));
  }

  /// Returns a tensor of dims |dims| that consists of |pieces| of |x|. Elements outside the pieces are |fill|, which is
  /// null if the pieces cover the tensor.
  mlir::Value copy(mlir::Value x, llvm::ArrayRef<device::Piece> pieces, llvm::ArrayRef<int64_t> dims,
                   mlir::FloatAttr fill = {}) {
    llvm::SmallVector<mlir::Attribute> attributes;
    for (const device::Piece &piece : pieces) {
      attributes.push_back(piece.get(builder.getContext()));
    }
    auto type = mlir::RankedTensorType::get(dims, typeOf(x).getElementType());
    return device::CopyOp::create(builder, loc, type, x, builder.getArrayAttr(attributes), fill);
  }

  /// Replaces the result of |op| by |value|, whose op gets the tensor's name, by which calibration finds the tensor.
  static void replaceResult(mlir::Operation *op, mlir::Value value) {
    top::copyNames(op, value.getDefiningOp());
    op->getResult(0).replaceAllUsesWith(value);
  }

  mlir::OpBuilder builder;
  mlir::Location loc;
};

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_TRANSFORMS_MOVEBUILDER_H
