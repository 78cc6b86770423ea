//===- Quantized.h - Integer form of ops between dequantize and quantize -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// A quantised Top model computes in float between `top.dequantize` and `top.quantize`. What both say about values,
// weights and results is read here; LowerConv and LowerMatMul make integer ops of it.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_CONVERSION_QUANTIZED_H
#define TESSERA_DEVICE_DIALECT_CONVERSION_QUANTIZED_H

#include "device_dialect/Conversion/TopToDevice/Lowering.h"
#include "top_dialect/IR/TopElementwiseOps.h"

namespace tessera::device {

/// r = scale (q - zero), one for the whole tensor, of integers of `element`.
struct Scaling {
  double scale;
  int64_t zero;
  mlir::Type element;

  bool operator==(const Scaling &other) const = default;
  int64_t lowest() const;
  int64_t highest() const;
  /// sat(rne(r / scale) + zero) in single precision, as top.quantize has it.
  int64_t quantize(double r) const;
};

/// The scaling of a quantize or dequantize with constant parameters for the whole tensor.
std::optional<Scaling> getScaling(top::QuantizeOp op);
std::optional<Scaling> getScaling(top::DequantizeOp op);

/// Integers that a float value stands for.
struct QuantizedTensor {
  mlir::Value values;
  Scaling scaling;
};
/// The i8 or ui8 tensor behind a float value.
std::optional<QuantizedTensor> matchQuantized(mlir::Value value);

/// Constant i8 weights whose zero points are taken off.
struct QuantizedWeights {
  mlir::RankedTensorType type;
  std::vector<char> values;
  llvm::SmallVector<double> scales; ///< one, or one per entry of dim `axis`
  int64_t largest;                  ///< magnitude

  double scale(int64_t channel) const { return scales.size() == 1 ? scales[0] : scales[channel]; }
};
/// Nothing where the weights are no 8-bit constants, or have scales along another dim than `axis`.
std::optional<QuantizedWeights> matchWeights(mlir::Value value, int64_t axis);

/// A bias in units of scales[c], rounded to nearest even; nothing where it is no constant or leaves i32. The integers
/// of a dequantised i32 bias of these very scales are taken as they are.
std::optional<std::vector<int64_t>> matchBias(mlir::Value bias, llvm::ArrayRef<double> scales);

/// What stands behind a product: its own activation, at most a few more clamps, then perhaps the quantize of the
/// result.
struct ProductTail {
  explicit ProductTail(mlir::Operation *product, bool relu, double limit);

  mlir::Operation *last;         ///< the op whose result the device op computes: a quantize, or the product
  std::optional<Scaling> output; ///< of the result; absent: it stays f32
  double low, high;              ///< clamp in the real domain
  llvm::SmallVector<mlir::Operation *> chain; ///< product to last
};

/// How accumulated integers of a product become the result, channel by channel.
struct ProductForm {
  mlir::Type resultElement;
  llvm::SmallVector<double> factors; ///< factor of each channel, rounded to f32
  double zero = 0, low = 0, high = 0;
  bool quantised = false;

  ProductForm(const ProductTail &tail, llvm::ArrayRef<double> scales);
  bool oneFactor() const;
  /// Each factor `count` times.
  void repeat(int64_t count);
  /// Result element of the accumulator (i32) and its factor (f32); null factor: the one of all channels.
  mlir::Value emit(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value sum, mlir::Value factor) const;
};

/// sat(rne(f32(sum) factor) + zero) as integer `type`, in single precision: the one place that spells it out. Clamp
/// bounds are in the integer domain.
mlir::Value emitRequantise(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value sum, mlir::Value factor,
                           double zero, double low, double high, mlir::Type type);

/// Whether no i32 sum of `steps` products with weights up to `largest`, and a bias, can overflow.
bool sumFits(const Scaling &x, int64_t steps, int64_t largest, llvm::ArrayRef<int64_t> bias);

/// Replaces the last op of the tail by `result` and removes the ops before it; names go to the op that computes.
void replaceTail(Lowering &lower, const ProductTail &tail, mlir::Value result);

// Each lowers the product to integers where operands and result allow; else it does nothing.
void lowerIntegerConv(mlir::PatternRewriter &rewriter, mlir::Operation *conv);
void lowerIntegerMatMul(mlir::PatternRewriter &rewriter, mlir::Operation *matmul);
void lowerIntegerMean(mlir::PatternRewriter &rewriter, mlir::Operation *reduceOrPool);
/// For a product whose result is i32.
void lowerIntegerResult(mlir::PatternRewriter &rewriter, mlir::Operation *product);

/// Moves dequantize down and quantize up past moves of data, so that these move integers and products meet their
/// parameters.
mlir::LogicalResult moveQuantization(mlir::Operation *function);

/// All of the above for a function; what is left are maps. Nothing happens to functions without quantisation.
mlir::LogicalResult lowerQuantised(mlir::Operation *function);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_CONVERSION_QUANTIZED_H
