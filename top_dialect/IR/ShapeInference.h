//===- ShapeInference.h - Shared helpers of shape inference ---------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_SHAPEINFERENCE_H
#define TESSERA_TOP_DIALECT_IR_SHAPEINFERENCE_H

#include "top_dialect/IR/TopInterfaces.h"

#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TensorTypes.h"

#include "mlir/IR/Diagnostics.h"

namespace tessera::top::detail {

using Types = llvm::SmallVectorImpl<mlir::RankedTensorType>;

/// Limit of a tensor's size, which rejects absurd dims before anything is allocated.
inline constexpr int64_t kMaxTensorBytes = int64_t(1) << 37;

using Dims = llvm::SmallVector<Dim>;

inline Dims shapeOf(mlir::Value value) { return Shape(value).dims(); }
inline int64_t rankOf(mlir::Value value) { return typeOf(value).getRank(); }
inline mlir::Type elementOf(mlir::Value value) { return typeOf(value).getElementType(); }

/// Two sizes that an op needs to be equal and that are not known to be.
struct UnequalSizes {
  Dim a, b;
};

/// While one exists, inference in this thread stores the last pair of symbolic sizes that dimsAgree() rejects. The
/// importer may then replace a symbol of an input so that they are equal.
class UnequalSizesRecorder {
public:
  UnequalSizesRecorder();
  ~UnequalSizesRecorder();
  std::optional<UnequalSizes> last;

private:
  UnequalSizesRecorder *outer;
};

/// Checks that two sizes are known to be equal, or that one of them is unknown.
bool dimsAgree(Dim a, Dim b);
/// Returns the size that is not unknown of two agreeing sizes.
inline Dim mergeDims(Dim a, Dim b) { return a.isUnknown() ? b : a; }
/// Returns the number of windows of |extent| that a pool places on |in| elements and their pads. With |ceil|, a last
/// window may reach beyond the padded input, but must start within the input or the leading pad. |behind| must be below
/// |extent|.
Dim pooledSize(Dim in, int64_t extent, int64_t stride, int64_t before, int64_t behind, bool ceil);

/// Checks that a <= b for all values of their symbols.
bool isAtMost(Dim a, Dim b);
/// Checks that |divisor| divides |size| for all values of its symbols, or that |size| is unknown.
inline bool mayDivide(int64_t divisor, Dim size) { return size.isUnknown() || isMultipleOf(size, divisor); }

/// Returns the product of two numbers, or kDynamic if one of them is. Saturates instead of overflowing.
int64_t mulDims(int64_t a, int64_t b);
/// Returns a * b, or an unknown size if one of them is unknown. Numbers saturate instead of overflowing.
Dim mulDims(Dim a, Dim b);
bool shapesAgree(llvm::ArrayRef<Dim> a, llvm::ArrayRef<Dim> b);
/// Returns text like "2x?x3" or "2x(32*h - 1)x3", or "scalar" for rank 0.
std::string formatShape(llvm::ArrayRef<Dim> shape);
/// kDynamic stands for an unknown size.
std::string formatShape(llvm::ArrayRef<int64_t> shape);

/// Broadcasts `shape` into `result`, as in numpy. `?` with 1 stays `?`, and `?` with n > 1 becomes n. Returns false if
/// the dims do not broadcast, or are not known to.
bool broadcastInto(Dims &result, llvm::ArrayRef<Dim> shape);

/// Infers the result of ops with ScalarInterface. Operands from number `firstSame` on must have one element type (C1),
/// and all dims must broadcast (C2).
llvm::LogicalResult inferElementwise(mlir::Operation *op, mlir::Type resultElement, unsigned firstSame, Types &types);

/// Checks whether a dim, or the number of bytes if no size is unknown, can exceed `kMaxTensorBytes`.
bool exceedsLimit(mlir::RankedTensorType type);

/// Appends a type. Fails if a dim is or may be negative, or the largest size exceeds `kMaxTensorBytes`.
llvm::LogicalResult addType(mlir::Operation *op, llvm::ArrayRef<Dim> shape, mlir::Type element, Types &types);

/// Fails unless 0 <= axis < rank. `label` is the constraint that the message names.
llvm::LogicalResult checkAxis(mlir::Operation *op, int64_t axis, int64_t rank, llvm::StringRef label);

/// Fails unless `indices` has element type i32 or i64.
llvm::LogicalResult checkIndexType(mlir::Operation *op, mlir::Value indices, llvm::StringRef label);

/// Fails unless the operands have the same element type.
llvm::LogicalResult checkSameElement(mlir::Operation *op, mlir::ValueRange values, llvm::StringRef label);

} // namespace tessera::top::detail

#endif // TESSERA_TOP_DIALECT_IR_SHAPEINFERENCE_H
