//===- Lowering.h - What the lowering patterns share ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_CONVERSION_LOWERING_H
#define TESSERA_DEVICE_DIALECT_CONVERSION_LOWERING_H

#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Pieces.h"
#include "mlir/IR/PatternMatch.h"
#include "top_dialect/IR/Constants.h"

namespace tessera::device {

/// Builds the device ops that take the place of one Top op: they get its location, `replace` hands
/// its names on. Moves of constants are carried out at compile time.
class Lowering {
public:
  Lowering(mlir::PatternRewriter &rewriter, mlir::Operation *op) : rewriter(rewriter), op(op), loc(op->getLoc()) {}

  using Body = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

  static mlir::RankedTensorType type(mlir::Value value) { return llvm::cast<mlir::RankedTensorType>(value.getType()); }
  static llvm::ArrayRef<int64_t> dims(mlir::Value value) { return type(value).getShape(); }
  static mlir::Type element(mlir::Value value) { return type(value).getElementType(); }

  /// The same elements under other dims; `x` itself when they are its own.
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> dims);

  /// Dim i of the result is dim perm[i] of `x`.
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> perm);

  /// Result index i = `x` index starts + i steps.
  mlir::Value slice(mlir::Value x, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> sizes,
                    llvm::ArrayRef<int64_t> steps);

  /// numpy broadcasting of `x` to `dims`.
  mlir::Value expand(mlir::Value x, llvm::ArrayRef<int64_t> dims);

  /// Joins along `axis`.
  mlir::Value concat(mlir::ValueRange inputs, int64_t axis);

  /// A copy of dims `dims`; elements outside the pieces hold `fill`. Of constants it is one where it is small, or at
  /// most `growth` times as large as the largest of them.
  mlir::Value copy(mlir::ValueRange sources, llvm::ArrayRef<Piece> pieces, llvm::ArrayRef<int64_t> dims,
                   std::optional<double> fill = std::nullopt, int64_t growth = 1);

  /// An elementwise computation; `body` gets one scalar per input. One-element constants among the
  /// inputs become constants of the body.
  mlir::Value map(mlir::ValueRange inputs, mlir::RankedTensorType result, Body body);

  /// A reduction that keeps the reduced dims as 1; the bodies may be absent.
  mlir::Value reduce(mlir::Value x, ReduceKind kind, llvm::ArrayRef<int64_t> axes, mlir::Type result,
                     Body prologue = nullptr, Body epilogue = nullptr, mlir::ValueRange extras = {});

  /// Fills the epilogue region of `op`; nothing happens when `body` is null and the accumulator has
  /// the result's type.
  void setEpilogue(mlir::Operation *op, Body body);

  /// A float constant of element type `elementType` (rounded from double) and dims `dims`.
  mlir::Value constant(llvm::ArrayRef<double> values, mlir::Type elementType, llvm::ArrayRef<int64_t> dims,
                       llvm::StringRef hint);

  /// Replaces the Top op.
  llvm::LogicalResult replace(mlir::ValueRange results);

  mlir::PatternRewriter &rewriter;
  mlir::Operation *op;
  mlir::Location loc;
};

/// A scalar constant of a body: float or integer type.
mlir::Value scalarConstant(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type, double value);

/// y = max(x, 0), then min(y, limit) when `limit` is positive.
mlir::Value emitRelu(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, double limit);

/// Widens to f32 or narrows to `type` between float types; other types pass.
mlir::Value castFloat(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, mlir::Type type);

// One per family; each adds the patterns of its Top ops.
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

#endif // TESSERA_DEVICE_DIALECT_CONVERSION_LOWERING_H
