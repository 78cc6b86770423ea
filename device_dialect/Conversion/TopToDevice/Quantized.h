//===- Quantized.h - Integer form of ops between dequantize and quantize -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// A quantised Top model computes in float between `top.dequantize` and `top.quantize`. What both say about values,
// weights and results is read here; LowerConv and LowerMatMul make integer ops of it.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_CONVERSION_QUANTIZED_H
#define TESSERA_DEVICE_DIALECT_CONVERSION_QUANTIZED_H

#include "bmodel/numerics.h"
#include "device_dialect/Conversion/TopToDevice/Lowering.h"
#include "top_dialect/IR/TopConvOps.h"
#include "top_dialect/IR/TopElementwiseOps.h"

namespace tessera::device {

using bmodel::numerics::Requantisation;

/// r = scale (q - zero), one for the whole tensor, of integers of `element`.
struct Scaling {
  double scale;
  int64_t zero;
  mlir::Type element;
  int64_t levels = 0; ///< where not 0: q lies in [-levels, levels]

  bool operator==(const Scaling &other) const = default;
  int64_t lowest() const;
  int64_t highest() const;
  /// Largest magnitude of q.
  int64_t reach() const { return std::max(highest(), -lowest()); }
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
/// The i8, ui8 or i16 tensor behind a float value.
std::optional<QuantizedTensor> matchQuantized(mlir::Value value);

/// Constant i8 weights whose zero points are taken off.
struct QuantizedWeights {
  mlir::RankedTensorType type;
  std::vector<char> values;
  llvm::SmallVector<double> scales; ///< one, or one per entry of dim `axis`
  int64_t largest;                  ///< magnitude
  std::vector<int64_t> sums;        ///< of magnitudes, per entry of dim `axis`

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
  llvm::SmallVector<double> factors;  ///< factor of each channel, where it is used in f32 rounded to that
  double zero = 0, low = 0, high = 0; ///< where quantised, in the integer domain
  bool quantised = false;
  Requantisation requantisation; ///< where quantised

  ProductForm(const ProductTail &tail, llvm::ArrayRef<double> scales, Requantisation requantisation);
  /// Each factor `count` times, one behind the other, or all of them `count` times.
  void repeat(int64_t count, bool together);
  /// What the epilogue reads beside sums of several channels: constants of dims `dims`, one entry a channel. None where
  /// one factor does for all.
  llvm::SmallVector<mlir::Value> operands(Lowering &lower, llvm::ArrayRef<int64_t> dims) const;
  /// Result element of the accumulator (i32) and the elements of operands(): the one place that spells out
  /// requantising.
  mlir::Value emit(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value sum, mlir::ValueRange operands) const;

private:
  bool oneFactor() const;
  bool inIntegers() const;
  mlir::Value emitInIntegers(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value sum,
                             mlir::ValueRange operands) const;
  mlir::Value narrow(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value integer) const;
};

/// Whether no i32 sum of `steps` products with weights up to `largest`, and a bias, can overflow.
bool sumFits(const Scaling &x, int64_t steps, int64_t largest, llvm::ArrayRef<int64_t> bias);

/// Whether no i32 sum of x with `steps` of the weights, and a bias (empty: none), can overflow; those of i16 x are
/// judged by the weights that there are, and get the `bound` that a device op states.
struct SumProof {
  SumProof(const Scaling &x, const QuantizedWeights &weights, int64_t steps, llvm::ArrayRef<int64_t> bias);
  bool holds;
  std::optional<int64_t> bound;

  mlir::IntegerAttr attribute(mlir::Builder &builder) const {
    return bound ? builder.getI64IntegerAttr(*bound) : mlir::IntegerAttr();
  }
};

/// Replaces the last op of the tail by `result` and removes the ops before it; names go to the op that computes.
void replaceTail(Lowering &lower, const ProductTail &tail, mlir::Value result);

// Each lowers the product to integers where operands and result allow; else it does nothing.
void lowerIntegerConv(mlir::PatternRewriter &rewriter, mlir::Operation *conv, Requantisation requantisation);
void lowerIntegerMatMul(mlir::PatternRewriter &rewriter, mlir::Operation *matmul, Requantisation requantisation);
void lowerIntegerMean(mlir::PatternRewriter &rewriter, mlir::Operation *reduceOrPool, Requantisation requantisation);
/// Attention with levels: as one of floats, with powers that are not rounded, where an operand is no symmetric i8.
void lowerIntegerAttention(mlir::PatternRewriter &rewriter, mlir::Operation *attention);
/// For a product whose result is i32.
void lowerIntegerResult(mlir::PatternRewriter &rewriter, mlir::Operation *product);

/// Integer weights with scales that a product of floats takes, see device.conv and device.matmul.
struct ScaledWeights {
  mlir::Value values, scales;
  int64_t group;
};
/// Reads the dequantized constant |weight| of a conv or matmul as such, creating constants; nothing for other values.
std::optional<ScaledWeights> matchScaledWeights(Lowering &lower, mlir::Value weight, bool isConv, bool transposed);

// Each lowers the product where its weight is a dequantized constant; else it does nothing.
void lowerScaledConv(mlir::PatternRewriter &rewriter, top::ConvOp conv);
void lowerScaledMatMul(mlir::PatternRewriter &rewriter, top::MatMulOp matmul);

/// Makes i16 of ui16: q - 32768, with a zero point less by as much. ui16 that others than dequantize read stay.
void centreWords(mlir::Operation *function);

/// Moves dequantize down and quantize up past moves of data, so that these move integers and products meet their
/// parameters.
mlir::LogicalResult moveQuantization(mlir::Operation *function);

/// Whether |op| widens f16 or bf16 to f32, or rounds f32 to one of them; false for null.
bool isWidening(top::CastOp op);
bool isRounding(top::CastOp op);

/// Removes such casts between ops whose device form reads or writes 16-bit floats. Those ops then have operands and
/// results that Top's verifiers do not know: they are to be lowered next.
void absorbCasts(mlir::PatternRewriter &rewriter, mlir::Operation *function);

/// All of the above for a function; what is left are maps. Nothing happens to functions without quantisation.
mlir::LogicalResult lowerQuantised(mlir::Operation *function, Requantisation requantisation);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_CONVERSION_QUANTIZED_H
