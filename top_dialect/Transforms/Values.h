//===- Values.h - Helpers for values in the Top passes ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_TRANSFORMS_VALUES_H
#define TESSERA_TOP_DIALECT_TRANSFORMS_VALUES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "top_dialect/IR/Constants.h"

#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TensorTypes.h"
#include <optional>

namespace tessera::top {

inline llvm::ArrayRef<int64_t> dimsOf(mlir::Value v) { return typeOf(v).getShape(); }

/// Returns true for a tensor without elements, whatever op computes it.
inline bool isEmpty(mlir::Value v) { return typeOf(v).hasStaticShape() && typeOf(v).getNumElements() == 0; }

/// Checks that `v` is a constant whose elements are available: a `top.weight` needs its weight file.
bool isReadable(mlir::Value v);

/// Returns the value of all elements of a float constant, or of an integer constant with one element; nothing for other
/// values.
std::optional<double> getScalar(mlir::Value v);

/// Returns a key for a weight derived from `constant` (which may be null): its own key, or `otherwise`.
llvm::StringRef constantHint(mlir::Value constant, llvm::StringRef otherwise);

/// Creates a constant of the float type `type`; the values are rounded once.
mlir::Value createFromDoubles(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
                              llvm::ArrayRef<double> values, llvm::StringRef hint);

/// Creates a constant with permuted dims: dim i of the result is dim perm[i] of `constant`.
mlir::Value createPermuted(mlir::OpBuilder &builder, mlir::Value constant, llvm::ArrayRef<int64_t> perm);

/// Returns `v` with other dims (with an equal element count and at most one dynamic dim), or `v` itself if it has these
/// dims. A constant is reshaped immediately.
mlir::Value createReshape(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value v, Shape shape);

/// Creates a slice of |v|.
mlir::Value createSlice(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value v, llvm::ArrayRef<Dim> starts,
                        llvm::ArrayRef<Dim> sizes, llvm::ArrayRef<int64_t> steps);

/// Creates a `top.transpose` of v: dim i of the result is dim perm[i] of v.
mlir::Value createTranspose(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value v, llvm::ArrayRef<int64_t> perm);

/// Returns the `channels` elements as double of a constant that broadcasts against a tensor of rank `rank` and varies
/// at most along dim `axis`. A single element is repeated.
std::optional<llvm::SmallVector<double>> getPerChannel(mlir::Value v, int64_t rank, int64_t axis, int64_t channels);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_TRANSFORMS_VALUES_H
