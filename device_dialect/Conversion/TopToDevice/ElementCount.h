// SPDX-License-Identifier: Apache-2.0
//===- ElementCount.h - Number of elements along some dims ------*- C++ -*-===//
#ifndef TESSERA_DEVICE_DIALECT_CONVERSION_TOPTODEVICE_ELEMENTCOUNT_H
#define TESSERA_DEVICE_DIALECT_CONVERSION_TOPTODEVICE_ELEMENTCOUNT_H

#include "device_dialect/Conversion/TopToDevice/Lowering.h"

namespace tessera::device {

/// The number of elements of a tensor along some axes. Sizes that are known only at run time become tensors.
class ElementCount {
public:
  ElementCount(Lowering &lower, Shape shape, llvm::ArrayRef<int64_t> axes);

  /// Returns the sizes along dims of symbolic sizes: i64 tensors of dims [1, ..., 1], operands of the body that emits
  /// the count.
  mlir::ValueRange operands() const { return sizes; }
  /// Emits the count as |type|. |values| are the elements of operands().
  mlir::Value emit(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type, mlir::ValueRange values) const;

private:
  int64_t known = 1; ///< product of the sizes that are numbers
  llvm::SmallVector<mlir::Value> sizes;
};

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_CONVERSION_TOPTODEVICE_ELEMENTCOUNT_H
