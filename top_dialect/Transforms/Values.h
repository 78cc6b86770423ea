//===- Values.h - Reading and making values in the Top passes --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_TRANSFORMS_VALUES_H
#define TESSERA_TOP_DIALECT_TRANSFORMS_VALUES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "top_dialect/IR/Constants.h"
#include <optional>

namespace tessera::top {

inline mlir::RankedTensorType tensorType(mlir::Value v) { return llvm::cast<mlir::RankedTensorType>(v.getType()); }
inline llvm::ArrayRef<int64_t> dimsOf(mlir::Value v) { return tensorType(v).getShape(); }

/// Returns true for a tensor that has no elements, whatever computes it.
inline bool isEmpty(mlir::Value v) { return tensorType(v).hasStaticShape() && tensorType(v).getNumElements() == 0; }

/// Whether `v` is a constant whose elements are at hand: a `top.weight` needs its weight file.
bool isReadable(mlir::Value v);

/// The value that every element of a float constant has, or that of an integer constant with one
/// element. None for other values.
std::optional<double> getScalar(mlir::Value v);

/// A key for a weight derived from `constant` (which may be null): its own key, or `otherwise`.
llvm::StringRef constantHint(mlir::Value constant, llvm::StringRef otherwise);

/// A constant of the float type `type`; the values are rounded once.
mlir::Value createFromDoubles(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
                              llvm::ArrayRef<double> values, llvm::StringRef hint);

/// A constant with the dims permuted: dim i of the result is dim perm[i] of `constant`.
mlir::Value createPermuted(mlir::OpBuilder &builder, mlir::Value constant, llvm::ArrayRef<int64_t> perm);

/// `v` under other dims (the element counts agree; at most one dim is dynamic); `v` itself when
/// it has them already. A constant is reshaped at once.
mlir::Value createReshape(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value v, llvm::ArrayRef<int64_t> dims);

/// `top.transpose` of v: dim i of the result is dim perm[i] of v.
mlir::Value createTranspose(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value v, llvm::ArrayRef<int64_t> perm);

/// A constant that broadcasts against a tensor of `rank` dims and varies at most along dim
/// `axis`: its `channels` elements as doubles (one element is repeated).
std::optional<llvm::SmallVector<double>> getPerChannel(mlir::Value v, int64_t rank, int64_t axis, int64_t channels);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_TRANSFORMS_VALUES_H
