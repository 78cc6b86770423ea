//===- Quantized.h - Integer form of quantised ops --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// A quantised Top model computes in float between `top.dequantize` and `top.quantize`. These helpers match both, with
// their values, weights and results; LowerConv and LowerMatMul then build integer ops.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_DEVICE_DIALECT_CONVERSION_TOPTODEVICE_QUANTIZED_H
#define TESSERA_DEVICE_DIALECT_CONVERSION_TOPTODEVICE_QUANTIZED_H

#include "bmodel/numerics.h"
#include "device_dialect/Conversion/TopToDevice/Lowering.h"
#include "top_dialect/IR/TopConvOps.h"
#include "top_dialect/IR/TopElementwiseOps.h"

namespace tessera::device {

using bmodel::numerics::Requantisation;

/// Quantisation of a whole tensor: r = scale (q - zero) with integers q of type `element`.
struct Scaling {
  double scale;
  int64_t zero;
  mlir::Type element;
  int64_t qmax = 0; ///< if not 0, q is limited to [-qmax, qmax]

  bool operator==(const Scaling &other) const = default;
  int64_t lowest() const;
  int64_t highest() const;
  /// Returns the largest magnitude of q.
  int64_t reach() const { return std::max(highest(), -lowest()); }
  /// Returns sat(rne(r / scale) + zero) in single precision, as top.quantize computes it.
  int64_t quantize(double r) const;
};

/// Return the scaling of a quantize or dequantize that has constant parameters for the whole tensor.
std::optional<Scaling> getScaling(top::QuantizeOp op);
std::optional<Scaling> getScaling(top::DequantizeOp op);

/// The integers that represent a float value.
struct QuantizedTensor {
  mlir::Value values;
  Scaling scaling;
};
/// Matches a float value that is a dequantised i8, ui8 or i16 tensor.
std::optional<QuantizedTensor> matchQuantized(mlir::Value value);

/// Constant i8 weights after subtracting their zero points.
struct QuantizedWeights {
  mlir::RankedTensorType type;
  std::vector<char> values;
  llvm::SmallVector<double> scales; ///< one, or one per entry of dim `axis`
  int64_t largest;                  ///< largest magnitude
  std::vector<int64_t> sums;        ///< sums of magnitudes, per entry of dim `axis`

  double scale(int64_t channel) const { return scales.size() == 1 ? scales[0] : scales[channel]; }
};
/// Matches 8-bit constant weights; returns nothing for other values and for scales along a dim other than `axis`.
std::optional<QuantizedWeights> matchWeights(mlir::Value value, int64_t axis);

/// Returns the bias in units of scales[c], rounded to nearest even; nothing if it is not constant or does not fit i32.
/// If the bias is a dequantised i32 with exactly these scales, returns its integers.
std::optional<std::vector<int64_t>> matchBias(mlir::Value bias, llvm::ArrayRef<double> scales);

/// Ops after a contraction that its epilogue absorbs: its activation, further clamps, and possibly the quantize of the
/// result.
struct ContractionTail {
  explicit ContractionTail(mlir::Operation *contraction, bool relu, double limit);

  mlir::Operation *last;         ///< op whose result the device op computes: a quantize, or the contraction itself
  std::optional<Scaling> output; ///< scaling of the result; absent: it stays f32
  double low, high;              ///< clamp in real numbers
  llvm::SmallVector<mlir::Operation *> chain; ///< ops from the contraction to |last|
};

/// Conversion of a contraction's integer sums to the result, per channel.
struct ContractionForm {
  mlir::Type resultElement;
  llvm::SmallVector<double> factors;  ///< factor of each channel; in f32 arithmetic it is rounded to f32
  double zero = 0, low = 0, high = 0; ///< zero point and clamp in integers, if quantised
  bool quantised = false;
  Requantisation requantisation; ///< if quantised

  ContractionForm(const ContractionTail &tail, llvm::ArrayRef<double> scales, Requantisation requantisation);
  /// Repeats each factor `count` times in place (`together`), or the sequence of all factors `count` times.
  void repeat(int64_t count, bool together);
  /// Returns the operands that the epilogue reads for per-channel factors: constants of dims `dims`, one entry per
  /// channel. Empty if one factor applies to all channels.
  llvm::SmallVector<mlir::Value> operands(Lowering &lower, llvm::ArrayRef<int64_t> dims) const;
  /// Emits the conversion of the i32 accumulator, with the elements of operands(), to a result element. This is the
  /// only place that emits requantisation.
  mlir::Value emit(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value sum, mlir::ValueRange operands) const;
  /// Returns true if sums become results without arithmetic in f32.
  bool inIntegers() const;

private:
  bool oneFactor() const;
  mlir::Value emitInIntegers(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value sum,
                             mlir::ValueRange operands) const;
  mlir::Value narrow(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value integer) const;
};

/// Returns true if no i32 sum of `steps` products with weights of magnitude up to `largest`, plus a bias, can overflow.
bool sumFits(const Scaling &x, int64_t steps, int64_t largest, llvm::ArrayRef<int64_t> bias);

/// Proof that no i32 sum of x with `steps` of the weights, plus a bias (empty: none), can overflow. For i16 x the
/// actual weights are examined, and `bound` is the bound that the device op states.
struct SumProof {
  SumProof(const Scaling &x, const QuantizedWeights &weights, int64_t steps, llvm::ArrayRef<int64_t> bias);
  bool holds;
  std::optional<int64_t> bound;

  mlir::IntegerAttr attribute(mlir::Builder &builder) const {
    return bound ? builder.getI64IntegerAttr(*bound) : mlir::IntegerAttr();
  }
};

/// Replaces the last op of the tail by `result` and erases the ops before it; the computing op gets the names.
void replaceTail(Lowering &lower, const ContractionTail &tail, mlir::Value result);

// Lower a contraction to integers if operands and result allow it; otherwise do nothing.
void lowerIntegerConv(mlir::PatternRewriter &rewriter, mlir::Operation *conv, Requantisation requantisation);
void lowerIntegerMatMul(mlir::PatternRewriter &rewriter, mlir::Operation *matmul, Requantisation requantisation);
void lowerIntegerMean(mlir::PatternRewriter &rewriter, mlir::Operation *reduceOrPool, Requantisation requantisation);
/// Lowers attention with levels to integers. Does nothing if an operand is not a symmetric i8; the attention then stays
/// float, without rounded powers.
void lowerIntegerAttention(mlir::PatternRewriter &rewriter, mlir::Operation *attention);
/// Lowers a contraction whose result is i32.
void lowerIntegerResult(mlir::PatternRewriter &rewriter, mlir::Operation *contraction);

/// Integer weights with scales for a float contraction, see device.conv and device.matmul.
struct ScaledWeights {
  mlir::Value values, scales;
  int64_t group;
};
/// Matches the dequantized constant |weight| of a conv or matmul and creates the constants; returns nothing for other
/// values.
std::optional<ScaledWeights> matchScaledWeights(Lowering &lower, mlir::Value weight, bool isConv, bool transposed);

// Lower a contraction whose weight is a dequantized constant; otherwise do nothing.
void lowerScaledConv(mlir::PatternRewriter &rewriter, top::ConvOp conv);
void lowerScaledMatMul(mlir::PatternRewriter &rewriter, top::MatMulOp matmul);

/// Converts ui16 tensors to i16: q - 32768, with the zero point reduced likewise. Skips ui16 tensors with readers other
/// than dequantize.
void centreWords(mlir::Operation *function);

/// Splits matmuls by weights whose groups have minima, q s + m, into a product with the integers and one of the sums of
/// groups with the minima:
/// y = matmul(x, reshape(dequantize(q, s) + m))   ==>   y = matmul(x, reshape(dequantize(q, s))) + matmul(sums(x), m)
void splitGroupMinima(mlir::PatternRewriter &rewriter, mlir::Operation *function);

/// Moves dequantize down and quantize up past copies, so that copies move integers and contractions meet their
/// parameters.
mlir::LogicalResult moveQuantization(mlir::Operation *function);

/// Return true if |op| widens f16 or bf16 to f32, or rounds f32 to one of them; false for null.
bool isWidening(top::CastOp op);
bool isRounding(top::CastOp op);

/// Removes these casts between ops whose device form reads or writes 16-bit floats. Top's verifiers reject the types of
/// these ops, so they must be lowered next.
void absorbCasts(mlir::PatternRewriter &rewriter, mlir::Operation *function);

/// Runs all of the above on a function; the remaining quantize and dequantize ops become maps. Does nothing for
/// functions without quantisation.
mlir::LogicalResult lowerQuantised(mlir::Operation *function, Requantisation requantisation);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_CONVERSION_TOPTODEVICE_QUANTIZED_H
