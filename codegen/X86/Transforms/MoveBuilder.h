//===- MoveBuilder.h - Copies and views beside an op ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_TRANSFORMS_MOVEBUILDER_H
#define TESSERA_CODEGEN_X86_TRANSFORMS_MOVEBUILDER_H

#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Pieces.h"
#include "top_dialect/IR/Names.h"

namespace tessera::x86 {

inline mlir::RankedTensorType typeOf(mlir::Value value) { return llvm::cast<mlir::RankedTensorType>(value.getType()); }

/// Moves of row-major tensors before an op.
class MoveBuilder {
public:
  explicit MoveBuilder(mlir::Operation *op) : builder(op), loc(op->getLoc()) {}

  /// The same elements under other dims; |x| itself when they are its own.
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> dims) {
    auto type = mlir::RankedTensorType::get(dims, typeOf(x).getElementType());
    return type == x.getType() ? x : mlir::Value(device::ReshapeOp::create(builder, loc, type, x));
  }

  /// A tensor of dims |dims| of |pieces| of |x|; elements outside of them hold |fill|, null where there are none.
  mlir::Value copy(mlir::Value x, llvm::ArrayRef<device::Piece> pieces, llvm::ArrayRef<int64_t> dims,
                   mlir::FloatAttr fill = {}) {
    llvm::SmallVector<mlir::Attribute> attributes;
    for (const device::Piece &piece : pieces) {
      attributes.push_back(piece.get(builder.getContext()));
    }
    auto type = mlir::RankedTensorType::get(dims, typeOf(x).getElementType());
    return device::CopyOp::create(builder, loc, type, x, builder.getArrayAttr(attributes), fill);
  }

  /// Replaces the result of |op| by |value|, whose op takes the tensor's name. Calibration finds tensors by it.
  static void replaceResult(mlir::Operation *op, mlir::Value value) {
    top::copyNames(op, value.getDefiningOp());
    op->getResult(0).replaceAllUsesWith(value);
  }

  mlir::OpBuilder builder;
  mlir::Location loc;
};

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_TRANSFORMS_MOVEBUILDER_H
