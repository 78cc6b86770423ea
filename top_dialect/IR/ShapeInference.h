//===- ShapeInference.h - What the shape inference of the op families shares ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top_dialect/IR/TopInterfaces.h"

#include "mlir/IR/Diagnostics.h"

namespace tessera::top::detail {

using Types = llvm::SmallVectorImpl<mlir::RankedTensorType>;

/// No tensor may be larger: catches absurd dims before anything is allocated.
inline constexpr int64_t kMaxTensorBytes = int64_t(1) << 37;

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) { return tensorType(value).getShape(); }
inline int64_t rankOf(mlir::Value value) { return tensorType(value).getRank(); }
inline mlir::Type elementOf(mlir::Value value) { return tensorType(value).getElementType(); }
inline bool isDynamic(int64_t dim) { return mlir::ShapedType::isDynamic(dim); }

/// Equal, or one of them is `?`.
inline bool dimsAgree(int64_t a, int64_t b) { return a == b || isDynamic(a) || isDynamic(b); }
/// The known one of two agreeing dims.
inline int64_t mergeDims(int64_t a, int64_t b) { return isDynamic(a) ? b : a; }
/// Windows of |extent| that a pool puts over |in| elements and the pads around them. |ceil|: also one that reaches
/// beyond, but none that would begin there, which sees nothing.
int64_t pooledSize(int64_t in, int64_t extent, int64_t stride, int64_t before, int64_t behind, bool ceil);

/// a * b or `?`.
int64_t mulDims(int64_t a, int64_t b);
bool shapesAgree(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);
/// "2x?x3", "scalar" for rank 0.
std::string formatShape(llvm::ArrayRef<int64_t> shape);

/// Numpy broadcasting of `shape` into `result`, which starts as a copy of one of the shapes.
/// `?` against 1 stays `?`, against n > 1 becomes n. False if the dims do not broadcast.
bool broadcastInto(llvm::SmallVectorImpl<int64_t> &result, llvm::ArrayRef<int64_t> shape);

/// Inference of every op with ScalarInterface: operands from number `firstSame` on have one element
/// type (C1), and all dims broadcast (C2).
llvm::LogicalResult inferElementwise(mlir::Operation *op, mlir::Type resultElement, unsigned firstSame, Types &types);

/// A dim, or all the bytes where they are known, are beyond `kMaxTensorBytes`.
bool exceedsLimit(mlir::RankedTensorType type);

/// Appends a type after checking that its dims are sizes and its bytes are below `kMaxTensorBytes`.
llvm::LogicalResult addType(mlir::Operation *op, llvm::ArrayRef<int64_t> shape, mlir::Type element, Types &types);

/// Fails unless 0 <= axis < rank, naming constraint `label`.
llvm::LogicalResult checkAxis(mlir::Operation *op, int64_t axis, int64_t rank, llvm::StringRef label);

/// Fails unless `indices` has element type i32 or i64.
llvm::LogicalResult checkIndexType(mlir::Operation *op, mlir::Value indices, llvm::StringRef label);

/// Fails unless the operands have the same element type.
llvm::LogicalResult checkSameElement(mlir::Operation *op, mlir::ValueRange values, llvm::StringRef label);

} // namespace tessera::top::detail
