//===- Lowering.h - Helpers of the lowering patterns ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_CONVERSION_TOPTODEVICE_LOWERING_H
#define TESSERA_DEVICE_DIALECT_CONVERSION_TOPTODEVICE_LOWERING_H

#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Pieces.h"
#include "mlir/IR/PatternMatch.h"
#include "top_dialect/IR/Constants.h"

namespace tessera::device {

/// The sizes of a result: numbers, expressions, or both.
class SizeList {
public:
  SizeList(std::initializer_list<Dim> sizes) : sizes(sizes) {}
  /*implicit*/ SizeList(Shape shape) : sizes(shape.dims()) {}
  template <std::convertible_to<llvm::ArrayRef<Dim>> Sizes>
  /*implicit*/ SizeList(const Sizes &sizes) : sizes(llvm::ArrayRef<Dim>(sizes)) {}
  template <std::convertible_to<llvm::ArrayRef<int64_t>> Numbers>
  /*implicit*/ SizeList(const Numbers &numbers) : sizes(Shape(numbers).dims()) {}

  operator llvm::ArrayRef<Dim>() const { return sizes; }

private:
  llvm::SmallVector<Dim> sizes;
};

/// Builds the device ops that replace one Top op. They get its location, and `replace` transfers its names. Copies of
/// constants are evaluated at compile time.
class Lowering {
public:
  Lowering(mlir::PatternRewriter &rewriter, mlir::Operation *op) : rewriter(rewriter), op(op), loc(op->getLoc()) {}

  using Body = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

  static mlir::RankedTensorType type(mlir::Value value) { return llvm::cast<mlir::RankedTensorType>(value.getType()); }
  static Shape shape(mlir::Value value) { return value; }
  /// Returns the sizes, all of which must be numbers.
  static llvm::ArrayRef<int64_t> dims(mlir::Value value) { return shape(value).values(); }
  static mlir::Type element(mlir::Value value) { return type(value).getElementType(); }

  /// Returns the same elements with other dims; `x` itself if it has these dims.
  mlir::Value reshape(mlir::Value x, const SizeList &sizes);

  /// Transposes `x`: dim i of the result is dim perm[i] of `x`.
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> perm);

  /// Slices `x`: result index i is index starts + i * steps of `x`.
  mlir::Value slice(mlir::Value x, const SizeList &starts, const SizeList &sizes, llvm::ArrayRef<int64_t> steps);

  /// Broadcasts `x` to `sizes` as in numpy.
  mlir::Value expand(mlir::Value x, const SizeList &sizes);

  /// Concatenates along `axis`.
  mlir::Value concat(mlir::ValueRange inputs, int64_t axis);

  /// Copies regions of `sources` to a result of `sizes`; elements outside the regions hold `fill`. A copy of
  /// constants becomes a constant if it is small, or at most `growth` times as large as its largest source.
  mlir::Value copy(mlir::ValueRange sources, llvm::ArrayRef<SymbolicPiece> pieces, const SizeList &sizes,
                   std::optional<double> fill = std::nullopt, int64_t growth = 1);

  /// Builds an elementwise computation; `body` receives one scalar per input. One-element constants among the inputs
  /// become constants of the body.
  mlir::Value map(mlir::ValueRange inputs, mlir::RankedTensorType result, Body body);

  /// Builds a reduction that keeps the reduced dims with size 1; the bodies may be null.
  mlir::Value reduce(mlir::Value x, ReduceKind kind, llvm::ArrayRef<int64_t> axes, mlir::Type result,
                     Body prologue = nullptr, Body epilogue = nullptr, mlir::ValueRange extras = {});

  /// Fills the epilogue region of `op`; leaves it empty if `body` is null and the accumulator has the result's type.
  void setEpilogue(mlir::Operation *op, Body body);

  /// Returns a constant of element type `elementType` (rounded from double) and dims `dims`.
  mlir::Value constant(llvm::ArrayRef<double> values, mlir::Type elementType, llvm::ArrayRef<int64_t> dims,
                       llvm::StringRef hint);

  /// Replaces the Top op and transfers its names.
  llvm::LogicalResult replace(mlir::ValueRange results);

  mlir::PatternRewriter &rewriter;
  mlir::Operation *op;
  mlir::Location loc;
};

/// Returns a scalar constant of float or integer type for a body.
mlir::Value scalarConstant(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type, double value);

/// Emits y = max(x, 0), then min(y, limit) if `limit` is positive.
mlir::Value emitRelu(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, double limit);

/// Converts between float types, widening or narrowing to `type`; returns values of other types unchanged.
mlir::Value castFloat(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, mlir::Type type);

// Add the patterns for one family of Top ops each.
void populateElementwisePatterns(mlir::RewritePatternSet &patterns);
void populateConvPatterns(mlir::RewritePatternSet &patterns);
void populatePoolPatterns(mlir::RewritePatternSet &patterns);
void populateMatMulPatterns(mlir::RewritePatternSet &patterns);
void populateReducePatterns(mlir::RewritePatternSet &patterns);
void populateNormPatterns(mlir::RewritePatternSet &patterns);
void populateMovePatterns(mlir::RewritePatternSet &patterns);
void populateIndexPatterns(mlir::RewritePatternSet &patterns);
void populateScatterPatterns(mlir::RewritePatternSet &patterns);
void populateResizePatterns(mlir::RewritePatternSet &patterns);
void populateSequencePatterns(mlir::RewritePatternSet &patterns);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_CONVERSION_TOPTODEVICE_LOWERING_H
