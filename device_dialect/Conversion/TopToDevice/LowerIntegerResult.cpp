//===- LowerIntegerResult.cpp - Contractions with an i32 result -----------===//
// SPDX-License-Identifier: Apache-2.0
//
// A contraction of i32 tensors that were widened from bytes multiplies the bytes instead: sum (x - z)(w + c) = sum x w
// + c sum x - z (sum w + K c), for bytes x and w, a zero point z that may only be known at run time, and constants c
// that shift each column of weights into the range of i8. All terms wrap around like i32, so the result is exact.
//===----------------------------------------------------------------------===//
#include "device_dialect/Conversion/TopToDevice/Quantized.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "top_dialect/IR/TopConvOps.h"
#include <limits>

using namespace mlir;

namespace tessera::device {
namespace {

using Dims = SmallVector<int64_t>;

bool isByte(Value value) { return Lowering::element(value).isInteger(8); }

/// An i32 tensor of the form x - zero, with bytes x.
struct WidenedBytes {
  Value bytes;
  Value zero;           ///< i32 with one element, or one per row of a matrix; null: |constant| is the zero point
  int64_t constant = 0; ///< zero point, if `zero` is null
};

/// Returns true if the zero point has dims [.., M, 1] for x [.., M, K].
bool isPerRow(Value zero, Value x) {
  Shape dims = zero, all = x;
  return dims.rank() == all.rank() && dims.back().is(1) && sameSizes(dims.dropBack(), all.dropBack());
}

/// Matches widened bytes. |perRow|: each row may have its own zero point.
std::optional<WidenedBytes> matchBytes(Value value, bool perRow = false) {
  WidenedBytes result;
  if (auto sub = value.getDefiningOp<top::SubOp>()) {
    result.zero = sub->getOperand(1);
    bool one = knownNumElements(result.zero) == 1;
    if (!one && !(perRow && isPerRow(result.zero, value))) {
      return std::nullopt;
    }
    value = sub->getOperand(0);
    if (std::optional<SmallVector<double>> known = top::getConstantDoubles(result.zero); one && known) {
      result.constant = static_cast<int64_t>(known->front());
      result.zero = {};
    }
  }
  auto cast = value.getDefiningOp<top::CastOp>();
  if (!cast || !isByte(cast->getOperand(0)) || !Lowering::element(value).isSignlessInteger(32)) {
    return std::nullopt;
  }
  result.bytes = cast->getOperand(0);
  bool isUnsigned = Lowering::element(result.bytes).isUnsignedInteger();
  bool inRange = result.constant >= (isUnsigned ? 0 : -128) && result.constant <= (isUnsigned ? 255 : 127);
  return inRange ? std::optional(result) : std::nullopt;
}

/// Constant i32 weights as bytes + shifts[c], with c along one dim.
struct ShiftedWeights {
  std::vector<char> bytes;
  SmallVector<double> sums;   ///< of the bytes, by channel
  SmallVector<double> shifts; ///< by channel
  int64_t steps = 0;          ///< weights per channel

  bool shifted() const {
    return llvm::any_of(shifts, [](double shift) { return shift != 0; });
  }
};

/// Matches weights; `channel(i)` is the channel of the i-th weight.
std::optional<ShiftedWeights> matchWeights(Value value, int64_t channels,
                                           llvm::function_ref<int64_t(int64_t)> channel) {
  auto cast = value.getDefiningOp<top::CastOp>(); // the weights may be widened i8
  bool widened = cast && isByte(cast.getX()) && !Lowering::element(cast.getX()).isUnsignedInteger();
  std::optional<top::TensorData> data = top::getConstantData(widened ? cast.getX() : value);
  if (!data || !Lowering::element(value).isSignlessInteger(32) || channels == 0) {
    return std::nullopt;
  }
  std::vector<int32_t> values;
  if (widened) {
    values.assign(data->data<int8_t>().begin(), data->data<int8_t>().end());
  } else {
    values.assign(data->data<int32_t>().begin(), data->data<int32_t>().end());
  }
  std::vector<int64_t> low(channels, std::numeric_limits<int32_t>::max()), high(channels, -low[0]);
  for (auto [i, weight] : llvm::enumerate(values)) {
    int64_t c = channel(static_cast<int64_t>(i));
    low[c] = std::min<int64_t>(low[c], weight), high[c] = std::max<int64_t>(high[c], weight);
  }
  ShiftedWeights result{std::vector<char>(values.size()),
                        SmallVector<double>(channels, 0),
                        {},
                        static_cast<int64_t>(values.size()) / channels};
  for (int64_t c = 0; c < channels; ++c) {
    if (high[c] - low[c] > 255 || low[c] < -1024 || high[c] > 1024) {
      return std::nullopt;
    }
    bool fits = low[c] >= -128 && high[c] <= 127;
    result.shifts.push_back(fits ? 0 : static_cast<double>(low[c] + 128));
  }
  for (auto [i, weight] : llvm::enumerate(values)) {
    int64_t c = channel(static_cast<int64_t>(i)), byte = weight - static_cast<int64_t>(result.shifts[c]);
    result.bytes[i] = static_cast<char>(byte);
    result.sums[c] += static_cast<double>(byte);
  }
  return result;
}

/// Returns true if the sum of bytes of x times bytes of w fits i32.
bool bytesFit(const WidenedBytes &x, int64_t steps) {
  int64_t largest = Lowering::element(x.bytes).isUnsignedInteger() ? 255 : 128;
  return steps <= std::numeric_limits<int32_t>::max() / (largest * 128);
}

/// Returns true if the op has no bias or if its bias is a constant.
bool isConstantBias(Value bias) { return !bias || top::getConstantData(bias); }

/// Terms that the epilogue of a contraction adds to its sum.
class Corrections {
public:
  Corrections(Lowering &lower, const WidenedBytes &x, const ShiftedWeights &w, Dims channelDims)
      : lower(lower), x(x), w(w), channelDims(std::move(channelDims)) {}

  /// Returns |given|, a constant bias or null, plus -z (sum w + K c) for a constant z; null if the sum is 0.
  Value bias(Value given) {
    std::optional<SmallVector<double>> added = given ? top::getConstantDoubles(given) : std::nullopt;
    if (!added && (x.zero || x.constant == 0)) {
      return {};
    }
    SmallVector<double> values;
    for (auto [c, sum, shift] : llvm::enumerate(w.sums, w.shifts)) {
      double correction = x.zero ? 0 : -static_cast<double>(x.constant) * (sum + static_cast<double>(w.steps) * shift);
      values.push_back(wrapped(correction + (added ? (*added)[c] : 0)));
    }
    return constant(values, {static_cast<int64_t>(values.size())});
  }

  /// Returns the operands of the epilogue: z and sum w + K c if z is not constant; c and `sums` of x if there are
  /// shifts.
  SmallVector<Value> extras(llvm::function_ref<Value()> sums) {
    SmallVector<Value> values;
    if (x.zero) {
      SmallVector<double> factors;
      for (auto [sum, shift] : llvm::zip_equal(w.sums, w.shifts)) {
        factors.push_back(wrapped(-(sum + static_cast<double>(w.steps) * shift)));
      }
      bool one = knownNumElements(x.zero) == 1;
      values.push_back(one ? lower.reshape(x.zero, Dims(channelDims.size(), 1)) : x.zero);
      values.push_back(constant(factors, channelDims));
    }
    if (w.shifted()) {
      values.push_back(sums());
      values.push_back(constant(w.shifts, channelDims));
    }
    return values;
  }

  /// Adds the products of pairs of factors to the accumulator.
  static Value emit(OpBuilder &b, Location loc, ValueRange values) {
    Value sum = values[0];
    for (size_t i = 1; i + 1 < values.size(); i += 2) {
      sum = arith::AddIOp::create(b, loc, sum, arith::MulIOp::create(b, loc, values[i], values[i + 1]));
    }
    return sum;
  }

private:
  static double wrapped(double value) {
    return static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(value)));
  }
  Value constant(ArrayRef<double> values, ArrayRef<int64_t> dims) {
    return lower.constant(values, lower.rewriter.getI32Type(), dims, "correction");
  }

  Lowering &lower;
  const WidenedBytes &x;
  const ShiftedWeights &w;
  Dims channelDims;
};

Value widen(OpBuilder &b, Location loc, Value byte, bool isUnsigned) {
  Type i32 = b.getI32Type();
  return isUnsigned ? arith::ExtUIOp::create(b, loc, i32, byte).getResult()
                    : arith::ExtSIOp::create(b, loc, i32, byte).getResult();
}

Value makeWeights(Lowering &lower, ArrayRef<int64_t> dims, ShiftedWeights &w) {
  return top::createConstant(lower.rewriter, lower.loc, RankedTensorType::get(dims, lower.rewriter.getI8Type()),
                             std::move(w.bytes), "integer_weights");
}

void finish(Lowering &lower, Operation *result) {
  lower.setEpilogue(result,
                    [](OpBuilder &b, Location loc, ValueRange values) { return Corrections::emit(b, loc, values); });
  (void)lower.replace(result->getResults());
}

void lowerMatMul(PatternRewriter &rewriter, top::MatMulOp op) {
  std::optional<WidenedBytes> x = matchBytes(op.getA(), /*perRow=*/!op.getTransA());
  if (!Shape(op.getB()).isKnown()) {
    return;
  }
  Shape aDims = op.getA();
  ArrayRef<int64_t> bDims = Lowering::dims(op.getB());
  const int64_t columns = bDims[bDims.size() - (op.getTransB() ? 2 : 1)];
  const int64_t depth = bDims[bDims.size() - (op.getTransB() ? 1 : 2)];
  bool oneMatrix = llvm::all_of(bDims.drop_back(2), [](int64_t dim) { return dim == 1; });
  if (!x || !oneMatrix || !isConstantBias(op.getBias()) || op.getRelu() || !bytesFit(*x, depth)) {
    return;
  }
  bool transB = op.getTransB();
  std::optional<ShiftedWeights> w =
      matchWeights(op.getB(), columns, [&](int64_t i) { return transB ? i / depth : i % columns; });
  if (!w) {
    return;
  }
  Lowering lower(rewriter, op);
  rewriter.setInsertionPoint(op);
  bool isUnsigned = Lowering::element(x->bytes).isUnsignedInteger();
  Corrections corrections(lower, *x, *w, {columns});
  SmallVector<Value> extras = corrections.extras([&] {
    int64_t axis = static_cast<int64_t>(aDims.rank()) - (op.getTransA() ? 2 : 1);
    Value sums =
        lower.reduce(x->bytes, ReduceKind::sum, axis, rewriter.getI32Type(),
                     [&](OpBuilder &b, Location loc, ValueRange v) { return widen(b, loc, v[0], isUnsigned); });
    SmallVector<Dim> rows = aDims.dims();
    rows[rows.size() - 2] = aDims[aDims.rank() - (op.getTransA() ? 1 : 2)];
    rows.back() = 1;
    return lower.reshape(sums, rows);
  });
  Value bias = corrections.bias(op.getBias());
  auto matmul = MatMulOp::create(rewriter, lower.loc, Lowering::type(op.getY()), x->bytes,
                                 makeWeights(lower, bDims, *w), bias, extras, Value(), op.getTransA(), op.getTransB(),
                                 /*packing=*/PackingInterface(), IntegerAttr());
  finish(lower, matmul);
}

/// Pads the spatial dims of x by `pads` with the zero point, which is only known at run time.
Value padWithZeroPoint(Lowering &lower, const WidenedBytes &x, ArrayRef<int64_t> pads) {
  size_t spatial = pads.size() / 2;
  SmallVector<Dim> padded = Lowering::shape(x.bytes).dims();
  Dims mask(padded.size(), 1);
  auto piece = SymbolicPiece::identity(0, padded);
  for (size_t d = 0; d < spatial; ++d) {
    piece.dstOffsets[d + 2] = pads[d];
    padded[d + 2] += pads[d] + pads[d + spatial];
    mask[d + 2] = padded[d + 2].value();
  }
  Value inside = lower.copy(x.bytes, piece, padded, 0.0);
  SmallVector<double> outside;
  top::HostTensor positions(lower.rewriter.getI8Type(), ArrayRef<int64_t>(mask).drop_front(2));
  Dims index(spatial, 0);
  for (int64_t i = 0; i < positions.getNumElements(); ++i) {
    bool border = false;
    for (int64_t rest = i, d = static_cast<int64_t>(spatial); d-- > 0; rest /= mask[d + 2]) {
      int64_t at = rest % mask[d + 2];
      border |= at < pads[d] || at >= pads[d] + Lowering::shape(x.bytes)[d + 2].value();
    }
    outside.push_back(border ? -1 : 0);
  }
  Value where = lower.constant(outside, lower.rewriter.getI8Type(), mask, "border");
  Value zero = lower.reshape(x.zero, Dims(padded.size(), 1));
  // The copy holds 0 where the mask is all ones.
  return lower.map({inside, where, zero}, tensorType(padded, Lowering::element(x.bytes)),
                   [](OpBuilder &b, Location loc, ValueRange v) -> Value {
                     Value byte = arith::TruncIOp::create(b, loc, b.getI8Type(), v[2]);
                     return arith::OrIOp::create(b, loc, v[0], arith::AndIOp::create(b, loc, v[1], byte));
                   });
}

void lowerConv(PatternRewriter &rewriter, top::ConvOp op) {
  std::optional<WidenedBytes> x = matchBytes(op.getX());
  if (!Shape(op.getW()).isKnown()) {
    return;
  }
  ArrayRef<int64_t> wDims = Lowering::dims(op.getW());
  int64_t channels = wDims[0], steps = channels ? numElements(op.getW()) / channels : 0;
  if (!x || wDims.size() < 4 || !isConstantBias(op.getBias()) || op.getRelu() || !bytesFit(*x, steps)) {
    return;
  }
  std::optional<ShiftedWeights> w = matchWeights(op.getW(), channels, [&](int64_t i) { return i / steps; });
  if (!w) {
    return;
  }
  Lowering lower(rewriter, op);
  rewriter.setInsertionPoint(op);
  Dims pads(op.getPads());
  bool padded = llvm::any_of(pads, [](int64_t pad) { return pad != 0; });
  Value bytes = x->bytes;
  if (padded && x->zero && !Shape(x->bytes).dropFront(2).isKnown()) {
    return;
  }
  if (padded && x->zero) {
    bytes = padWithZeroPoint(lower, *x, pads);
    pads.assign(pads.size(), 0), padded = false;
  }
  Dims channelDims(wDims.size() - 1, 1);
  channelDims[0] = channels;
  auto convolve = [&](Value weights, Value bias, ValueRange extras) {
    return ConvOp::create(rewriter, lower.loc, Lowering::type(op.getY()), bytes, weights, bias, extras, Value(),
                          op.getStridesAttr(), rewriter.getDenseI64ArrayAttr(pads), op.getDilationsAttr(),
                          op.getGroups(),
                          /*packing=*/PackingInterface(), padded ? x->constant : 0, IntegerAttr());
  };
  Corrections corrections(lower, *x, *w, channelDims);
  SmallVector<Value> extras = corrections.extras([&]() -> Value {
    // Sums over windows are a convolution with ones.
    auto type = RankedTensorType::get(wDims, rewriter.getI8Type());
    Value ones = top::createConstant(rewriter, lower.loc, type, std::vector<char>(numElements(type), 1), "ones");
    auto sums = convolve(ones, Value(), {});
    lower.setEpilogue(sums, nullptr);
    return sums.getY();
  });
  Value bias = corrections.bias(op.getBias());
  finish(lower, convolve(makeWeights(lower, wDims, *w), bias, extras));
}

} // namespace

void lowerIntegerResult(PatternRewriter &rewriter, Operation *op) {
  if (!Lowering::element(op->getResult(0)).isSignlessInteger(32)) {
    return;
  }
  if (auto matmul = dyn_cast<top::MatMulOp>(op)) {
    lowerMatMul(rewriter, matmul);
  } else if (auto conv = dyn_cast<top::ConvOp>(op)) {
    lowerConv(rewriter, conv);
  }
}

} // namespace tessera::device
