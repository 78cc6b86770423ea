//===- ShapeInference.h - Shared helpers of shape inference ---------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_SHAPEINFERENCE_H
#define TESSERA_TOP_DIALECT_IR_SHAPEINFERENCE_H

#include "top_dialect/IR/TopInterfaces.h"

#include "top_dialect/IR/TensorTypes.h"

#include "mlir/IR/Diagnostics.h"

namespace tessera::top::detail {

using Types = llvm::SmallVectorImpl<mlir::RankedTensorType>;

/// Limit of a tensor's size, which rejects absurd dims before anything is allocated.
inline constexpr int64_t kMaxTensorBytes = int64_t(1) << 37;

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) { return typeOf(value).getShape(); }
inline int64_t rankOf(mlir::Value value) { return typeOf(value).getRank(); }
inline mlir::Type elementOf(mlir::Value value) { return typeOf(value).getElementType(); }
inline bool isDynamic(int64_t dim) { return mlir::ShapedType::isDynamic(dim); }

/// Checks that two dims are equal, or that one of them is `?`.
inline bool dimsAgree(int64_t a, int64_t b) { return a == b || isDynamic(a) || isDynamic(b); }
/// Returns the known one of two agreeing dims.
inline int64_t mergeDims(int64_t a, int64_t b) { return isDynamic(a) ? b : a; }
/// Returns the number of windows of |extent| that a pool places on |in| elements and their pads. With |ceil|, a last
/// window may reach beyond the padded input, but must start within the input or the leading pad.
int64_t pooledSize(int64_t in, int64_t extent, int64_t stride, int64_t before, int64_t behind, bool ceil);

/// Returns a * b, or `?` if one of them is `?`. Saturates instead of overflowing.
int64_t mulDims(int64_t a, int64_t b);
bool shapesAgree(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);
/// Returns text like "2x?x3", or "scalar" for rank 0.
std::string formatShape(llvm::ArrayRef<int64_t> shape);

/// Broadcasts `shape` into `result`, as in numpy. `?` with 1 stays `?`, and `?` with n > 1 becomes n. Returns false if
/// the dims do not broadcast.
bool broadcastInto(llvm::SmallVectorImpl<int64_t> &result, llvm::ArrayRef<int64_t> shape);

/// Infers the result of ops with ScalarInterface. Operands from number `firstSame` on must have one element type (C1),
/// and all dims must broadcast (C2).
llvm::LogicalResult inferElementwise(mlir::Operation *op, mlir::Type resultElement, unsigned firstSame, Types &types);

/// Checks whether a dim, or the number of bytes if it is known, exceeds `kMaxTensorBytes`.
bool exceedsLimit(mlir::RankedTensorType type);

/// Appends a type. Fails if a dim is negative or the size exceeds `kMaxTensorBytes`.
llvm::LogicalResult addType(mlir::Operation *op, llvm::ArrayRef<int64_t> shape, mlir::Type element, Types &types);

/// Fails unless 0 <= axis < rank. `label` is the constraint that the message names.
llvm::LogicalResult checkAxis(mlir::Operation *op, int64_t axis, int64_t rank, llvm::StringRef label);

/// Fails unless `indices` has element type i32 or i64.
llvm::LogicalResult checkIndexType(mlir::Operation *op, mlir::Value indices, llvm::StringRef label);

/// Fails unless the operands have the same element type.
llvm::LogicalResult checkSameElement(mlir::Operation *op, mlir::ValueRange values, llvm::StringRef label);

} // namespace tessera::top::detail

#endif // TESSERA_TOP_DIALECT_IR_SHAPEINFERENCE_H
