//===- ReferenceCompute.cpp - Naive evaluation of the compute family ------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceComputeOps.h"
#include "device_dialect/IR/Exact.h"
#include "device_dialect/IR/Pieces.h"
#include "device_dialect/IR/WeightScales.h"
#include "device_dialect/Reference/AsTop.h"
#include "device_dialect/Reference/FloatOps.h"
#include "device_dialect/Reference/ScalarInterpreter.h"
#include "top_dialect/IR/TopOps.h"

using namespace mlir;
using namespace tessera::device;
using namespace tessera::device::reference;
using tessera::top::HostTensor;
namespace top = tessera::top;

/// Computes sums of the accumulator type with `accumulate`, then applies the epilogue.
template <typename Op, typename Accumulate>
static LogicalResult withEpilogue(Op op, Inputs inputs, Outputs outputs, Accumulate accumulate) {
  size_t extras = op.getExtras().size();
  size_t own = inputs.size() - extras;
  if constexpr (requires { op.getScales(); }) {
    own -= op.getScales() ? 1 : 0; // scales are the last operand; they are already applied to the weights
  }
  HostTensor sums(op.getAccumulatorType(), outputs[0].getShape());
  if (failed(accumulate(inputs.take_front(own), MutableArrayRef<HostTensor>(sums)))) {
    return failure();
  }
  SmallVector<const HostTensor *> arguments{&sums};
  llvm::append_range(arguments, inputs.slice(own, extras));
  return runScalarRegion(op.getEpilogue(), arguments, outputs[0]);
}

static LogicalResult rejectPacked(Operation *op) {
  return op->emitOpError("has packed weights: the reference evaluates a function before its weights are packed");
}

/// Pads x [N, C, D...] around each D by `pads` positions of `value`.
static HostTensor padSpatially(const HostTensor &x, ArrayRef<int64_t> pads, int64_t value) {
  size_t spatial = pads.size() / 2;
  SmallVector<int64_t> padded(x.getShape());
  for (size_t d = 0; d < spatial; ++d) {
    padded[d + 2] += pads[d] + pads[d + spatial];
  }
  HostTensor result(x.getElementType(), padded);
  top::reference::fill(result, static_cast<double>(value));
  top::reference::Dims strides = top::reference::rowMajorStrides(padded);
  int64_t begin = 0, width = top::elementBytes(x.getElementType());
  for (size_t d = 0; d < spatial; ++d) {
    begin += pads[d] * strides[d + 2];
  }
  char *to = result.getBytes().data();
  const char *from = x.getBytes().data();
  top::reference::forEachOffset(x.getShape(), strides, begin, [&](int64_t i, int64_t offset) {
    std::memcpy(to + offset * width, from + i * width, width);
  });
  return result;
}

/// Returns integer weights times their scales, as f32.
static HostTensor applyScales(const HostTensor &weights, const HostTensor &scales, const WeightScales &order) {
  HostTensor result(Float32Type::get(weights.getElementType().getContext()), weights.getShape());
  auto integers = ArrayRef(reinterpret_cast<const int8_t *>(weights.getBytes().data()), weights.getBytes().size());
  auto factors = ArrayRef(reinterpret_cast<const float *>(scales.getBytes().data()), scales.getNumElements());
  std::vector<float> floats = order.apply(integers, factors);
  std::memcpy(result.getBytes().data(), floats.data(), result.getBytes().size());
  return result;
}

LogicalResult ConvOp::evaluate(Inputs inputs, Outputs outputs) {
  if (getPacking()) {
    return rejectPacked(*this);
  }
  Builder builder(getContext());
  SmallVector<const HostTensor *> operands(inputs);
  HostTensor padded;
  DenseI64ArrayAttr pads = getPadsAttr();
  if (getPadValue() != 0) {
    padded = padSpatially(*inputs[0], getPads(), getPadValue());
    operands[0] = &padded;
    pads = builder.getDenseI64ArrayAttr(SmallVector<int64_t>(pads.size(), 0));
  }
  HostTensor scaled;
  if (getScales()) {
    auto order = WeightScales::ofConv(cast<RankedTensorType>(getW().getType()).getShape(), getWeightGroup());
    scaled = applyScales(*inputs[1], *inputs.back(), order);
    operands[1] = &scaled;
  }
  return withEpilogue(*this, operands, outputs, [&](Inputs own, Outputs sums) {
    return evaluateAs<top::ConvOp>(*this, own, sums, getX(), getW(), getBias(), getStridesAttr(), pads,
                                   getDilationsAttr(), getGroupsAttr(), builder.getBoolAttr(false),
                                   builder.getF64FloatAttr(-1));
  });
}

LogicalResult MatMulOp::evaluate(Inputs inputs, Outputs outputs) {
  if (getPacking()) {
    return rejectPacked(*this);
  }
  Builder builder(getContext());
  SmallVector<const HostTensor *> operands(inputs);
  HostTensor scaled;
  if (getScales()) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(getB().getType()).getShape();
    scaled = applyScales(*inputs[1], *inputs.back(), WeightScales::ofMatMul(shape, getWeightGroup(), getTransB()));
    operands[1] = &scaled;
  }
  return withEpilogue(*this, operands, outputs, [&](Inputs own, Outputs sums) -> LogicalResult {
    if (isOrderedContraction(*this)) {
      matmulF32(*this, own, sums[0]);
      return success();
    }
    return evaluateAs<top::MatMulOp>(*this, own, sums, getA(), getB(), getBias(), getTransAAttr(), getTransBAttr(),
                                     builder.getBoolAttr(false), builder.getF64FloatAttr(-1));
  });
}

LogicalResult PoolOp::evaluate(Inputs inputs, Outputs outputs) {
  Builder builder(getContext());
  // The dims of the result are given, so the ceil mode does not matter.
  BoolAttr ceilMode = builder.getBoolAttr(false);
  return withEpilogue(*this, inputs, outputs, [&](Inputs own, Outputs sums) {
    if (getKind() == PoolKind::max) {
      return evaluateAs<top::MaxPoolOp>(*this, own, sums, getX(), getKernelAttr(), getStridesAttr(), getPadsAttr(),
                                        getDilationsAttr(), ceilMode);
    }
    if (sums[0].getElementType().isF32() && fitSingle(own)) {
      Singles x(own);
      averagePoolF32(*this, *Inputs(x)[0], sums[0]);
      return success();
    }
    return evaluateAs<top::AvgPoolOp>(*this, own, sums, getX(), getKernelAttr(), getStridesAttr(), getPadsAttr(),
                                      getDilationsAttr(), ceilMode, getCountIncludePadAttr());
  });
}

LogicalResult MapOp::evaluate(Inputs inputs, Outputs outputs) { return runScalarRegion(getBody(), inputs, outputs[0]); }

LogicalResult LutOp::evaluate(Inputs inputs, Outputs outputs) {
  ArrayRef<char> x = inputs[0]->getBytes(), table = inputs[1]->getBytes();
  MutableArrayRef<char> y = outputs[0].getBytes();
  ArrayRef<int64_t> dims = inputs[0]->getShape();
  size_t channels = hasTablePerChannel() ? size_t(dims[1]) : 1, inner = hasTablePerChannel() ? dims[2] * dims[3] : 1;
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = table[i / inner % channels * 256 + static_cast<uint8_t>(x[i])];
  }
  return success();
}

static top::ReduceKind topKind(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::sum:
    return top::ReduceKind::sum;
  case ReduceKind::max:
    return top::ReduceKind::max;
  case ReduceKind::min:
    return top::ReduceKind::min;
  case ReduceKind::prod:
    return top::ReduceKind::prod;
  }
  return top::ReduceKind::sum;
}

LogicalResult ReduceOp::evaluate(Inputs inputs, Outputs outputs) {
  HostTensor elements;
  if (getPrologue().empty()) {
    elements = *inputs[0]; // keeps the signedness of its type, which an accumulator does not have
  } else {
    elements = HostTensor(getAccumulatorType(), inputs[0]->getShape());
    if (failed(runScalarRegion(getPrologue(), inputs[0], elements))) {
      return failure();
    }
  }
  Builder builder(getContext());
  return withEpilogue(*this, inputs, outputs, [&](Inputs, Outputs sums) -> LogicalResult {
    if (getAxes().empty()) {
      sums[0] = elements;
      return success();
    }
    bool ordered = getKind() == ReduceKind::sum || getKind() == ReduceKind::prod;
    if (ordered && elements.getElementType().isF32() && sums[0].getElementType().isF32()) {
      reduceF32(elements, sums[0], getAxes(), getKind() == ReduceKind::prod);
      return success();
    }
    return evaluateAs<top::ReduceOp>(*this, {&elements}, sums, getX(),
                                     top::ReduceKindAttr::get(getContext(), topKind(getKind())), getAxesAttr(),
                                     builder.getBoolAttr(true));
  });
}

LogicalResult SoftmaxOp::evaluate(Inputs inputs, Outputs outputs) {
  if (fitSingle(inputs)) {
    Singles x(inputs);
    inSingle(outputs[0], [&](HostTensor &y) { softmaxF32(*Inputs(x)[0], y, getAxis(), getLog()); });
    return success();
  }
  return evaluateAs<top::SoftmaxOp>(*this, inputs, outputs, getX(), getAxisAttr(), getLogAttr());
}

/// Calls |compute| with a tensor of the accumulator type of |op|; the epilogue then computes |y| from it.
template <typename Op>
static LogicalResult throughEpilogue(Op op, HostTensor &y, llvm::function_ref<LogicalResult(HostTensor &)> compute) {
  if (op.getEpilogue().empty()) {
    return compute(y);
  }
  HostTensor sums(op.getAccumulatorType(), y.getShape());
  return failed(compute(sums)) ? failure() : runScalarRegion(op.getEpilogue(), {&sums}, y);
}

LogicalResult NormOp::evaluate(Inputs inputs, Outputs outputs) {
  return throughEpilogue(*this, outputs[0], [&](HostTensor &sums) -> LogicalResult {
    if (fitSingle(inputs)) {
      inSingle(sums, [&](HostTensor &y) { normF32(*this, Singles(inputs), y); });
      return success();
    }
    return evaluateAs<top::LayerNormOp>(*this, inputs, sums, getX(), getScale(), getBias(), getAxisAttr(),
                                        getEpsilonAttr(), getRmsAttr());
  });
}

/// Returns the elements of |source| that |piece| reads, in a tensor of dims |sizes|.
static HostTensor viewOf(PieceAttr piece, const HostTensor &source, ArrayRef<int64_t> sizes) {
  HostTensor result(source.getElementType(), sizes);
  movePiece(piece, source.getBytes().data(), source.getShape(), result.getBytes().data(), sizes,
            top::elementBytes(source.getElementType()));
  return result;
}

/// Evaluates attention on the tensors that the views select from q, k and v, and on the mask; then moves the result to
/// y.
static void evaluateViews(AttentionOp op, Inputs inputs, HostTensor &y) {
  SmallVector<PieceAttr> pieces(op.getViews()->getAsRange<PieceAttr>());
  std::array<HostTensor, 3> made;
  SmallVector<const HostTensor *> own(inputs);
  for (unsigned i = 0; i < made.size(); ++i) {
    made[i] = viewOf(pieces[i], *inputs[i], op.view(i).sizes);
    own[i] = &made[i];
  }
  HostTensor result(y.getElementType(), op.view(3).sizes);
  if (op.isOfIntegers()) {
    attentionI8(op, own, result);
  } else {
    inSingle(result, [&](HostTensor &single) { attentionF32(op, Singles(own), single); });
  }
  y = viewOf(pieces[3], result, y.getShape());
}

LogicalResult AttentionOp::evaluate(Inputs inputs, Outputs outputs) {
  return throughEpilogue(*this, outputs[0], [&](HostTensor &sums) -> LogicalResult {
    if (getKeys()) {
      return emitOpError("reads a number of keys that is known at run time only");
    }
    if (getViews()) {
      evaluateViews(*this, inputs, sums);
      return success();
    }
    if (isOfIntegers()) {
      attentionI8(*this, inputs, sums);
      return success();
    }
    if (fitSingle(inputs)) {
      inSingle(sums, [&](HostTensor &y) { attentionF32(*this, Singles(inputs), y); });
      return success();
    }
    return evaluateAs<top::AttentionOp>(*this, inputs, sums, getQ(), getK(), getV(), getMask(), getScaleAttr(),
                                        IntegerAttr());
  });
}

/// Returns a w for top.rnn for an op without w, whose x holds the sums of all gates: it selects each direction's own
/// sums.
static HostTensor selectSums(Builder &builder, int64_t directions, int64_t rows) {
  HostTensor w(builder.getF32Type(), {directions, rows, directions * rows});
  for (int64_t i = 0; i < directions * rows; ++i) {
    w.data<float>()[i * directions * rows + i] = 1;
  }
  return w;
}

/// Returns the state's biases preceded by zeros in place of the inputs' biases.
static HostTensor behindZeros(const HostTensor &bias) {
  int64_t directions = bias.getShape()[0], rows = bias.getShape()[1], bytes = top::elementBytes(bias.getElementType());
  HostTensor both(bias.getElementType(), {directions, 2 * rows});
  for (int64_t d = 0; d < directions; ++d) {
    std::memcpy(both.getBytes().data() + (2 * d + 1) * rows * bytes, bias.getBytes().data() + d * rows * bytes,
                rows * bytes);
  }
  return both;
}

LogicalResult RecurrentOp::evaluate(Inputs inputs, Outputs outputs) {
  if (getPacking()) {
    return rejectPacked(*this);
  }
  std::optional<top::RnnKind> kind = top::symbolizeRnnKind(getKind());
  std::optional<top::RnnDirection> direction = top::symbolizeRnnDirection(getDirection());
  assert(kind && direction && "the verifier admits known names only");
  Builder builder(getContext());
  HostTensor selected, bias;
  SmallVector<const HostTensor *> operands(inputs);
  if (getW()) {
    std::swap(operands[1], operands[2]); // top.rnn has w before r
  } else {
    selected = selectSums(builder, getNumDirections(), getNumGates() * int64_t(getHiddenSize()));
    operands.insert(operands.begin() + 1, &selected);
    if (getBias()) {
      bias = behindZeros(*inputs[2]);
      operands[3] = &bias;
    }
  }
  Value w = getW() ? getW() : getR(); // the evaluation only reads the tensors
  return evaluateAs<top::RnnOp>(*this, operands, outputs, getX(), w, getR(), getBias(), getSequenceLens(),
                                getInitialH(), getInitialC(), getPeephole(), top::RnnKindAttr::get(getContext(), *kind),
                                top::RnnDirectionAttr::get(getContext(), *direction), getHiddenSizeAttr(),
                                getActivationsAttr(), getClipAttr(), getLinearBeforeResetAttr());
}
