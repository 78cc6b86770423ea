//===- Conv.cpp - Convolution kernels -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Handles any rank, groups, dilation, element type and layout. Weights must be in logical order (not packed).
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/ConvThreads.h"
#include "codegen/Kernels/Epilogue.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/MathApprox.h"
#include "codegen/Kernels/Models.h"
#include "codegen/Kernels/Rows.h"
#include "codegen/Kernels/Window.h"

#include "device_dialect/IR/DeviceComputeOps.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::kernels {

namespace {

/// Emits the output row by row: a vector of output columns accumulates over input channels and kernel taps. Taps
/// outside the input are skipped or, if the padding value is not zero, multiplied by the padding value.
class GenericConv {
public:
  GenericConv(KernelBuilder &kb, device::ConvOp op)
      : kb(kb), op(op), x(kb.operandType(0)), w(kb.operandType(1)), y(kb.resultType()),
        epilogue(kb, cast<device::EpilogueInterface>(*op)), accumulator(registerType(op.getAccumulatorType())) {
    windows = windowDims(x, y, Shape(w).dropFront(2).values(), op.getStrides(), op.getPads(), op.getDilations());
    lanes = 2 * kb.target.lanes(32);
  }

  void emit() {
    SmallVector<Dim> rows = {Shape(y)[0], paddedChannels(y)};
    for (const WindowDim &window : ArrayRef(windows).drop_back()) {
      rows.push_back(window.output);
    }
    Dim count = multiply(rows);
    if (kb.target.tileIsThread) { // one thread for each vector of columns
      rows.push_back(ceilDiv(windows.back().output, lanes));
      return forItems(kb, count * rows.back(), 1, 1, [&](Value vector) {
        SmallVector<Value> at = delinearize(kb, vector, rows);
        at.back() = kb.mul(at.back(), lanes);
        emitVector(at);
      });
    }
    Dim work = windows.back().output * (numElements(w) / std::max<int64_t>(1, Shape(w)[0].value()));
    forItems(kb, count, work, 65536, [&](Value row) { emitRow(delinearize(kb, row, rows)); });
  }

private:
  void emitRow(SmallVector<Value> indices) {
    kb.forLoop(0, ceilDiv(windows.back().output, lanes) * lanes, lanes, [&](Value column) {
      SmallVector<Value> at = indices;
      at.push_back(column);
      emitVector(at);
    });
  }

  void emitVector(SmallVector<Value> at) {
    int64_t channels = Shape(y)[1].value();
    Value outputMask = kb.maskBelow(lanes, kb.sub(kb.index(windows.back().output), at.back()));
    // Padding channels of a blocked result repeat the last channel and store zeros.
    Value channel = kb.min(at[1], kb.constant(channels - 1));
    SmallVector<Value> clamped = at;
    clamped[1] = channel;
    Value sum = kb.splat(initial(channel), lanes);
    int64_t perGroup = Shape(w)[1].value();
    Value firstChannel = kb.mul(kb.div(channel, channels / op.getGroups()), perGroup);
    sum = kb.forLoop(kb.constant(0), kb.constant(perGroup), 1, sum, [&](Value ic, ValueRange sums) {
      SmallVector<Value> input = {at[0], kb.add(firstChannel, ic)}, weight = {channel, ic};
      return SmallVector<Value>{taps(0, at, input, weight, sums[0])};
    })[0];
    bool blocked = Strides(y).block && channels % Strides(y).block;
    if (!blocked) {
      return epilogue.store(sum, at, at.size() - 1, outputMask);
    }
    kb.ifThen(kb.less(at[1], kb.constant(channels)), [&] { epilogue.store(sum, at, at.size() - 1, outputMask); });
    kb.ifThen(kb.less(kb.constant(channels - 1), at[1]), [&] {
      Value zeros = kb.zero(VectorType::get({int64_t(lanes)}, registerType(y.getElementType())));
      storeLanes(kb, y.getElementType(), zeros, kb.result(), laneStride(y, at.size() - 1),
                 VectorStep{{}, outputMask, lanes}, Strides(y).offset(kb, at));
    });
  }

  Value initial(Value channel) {
    if (!op.getBias()) {
      return kb.zero(accumulator);
    }
    Type type = cast<RankedTensorType>(op.getBias().getType()).getElementType();
    return convertElement(kb, kb.loadElements(type, 0, kb.operand(2), channel), type, accumulator);
  }

  /// Emits the loops over the taps of dim |d| and of all dims inside it.
  Value taps(unsigned d, ArrayRef<Value> at, SmallVector<Value> input, SmallVector<Value> weight, Value sum) {
    const WindowDim &window = windows[d];
    bool isColumn = d + 1 == windows.size();
    Value first = kb.constant(0), last = kb.constant(window.kernel);
    if (!isColumn && !op.getPadValue()) {
      std::tie(first, last) = window.validTaps(kb, at[d + 2]);
    }
    return kb.forLoop(first, last, 1, sum, [&](Value tap, ValueRange sums) {
      SmallVector<Value> inputNext = input, weightNext = weight;
      inputNext.push_back(window.inputAt(kb, at[d + 2], tap));
      weightNext.push_back(tap);
      Value next =
          isColumn ? multiplyTap(inputNext, weightNext, sums[0]) : taps(d + 1, at, inputNext, weightNext, sums[0]);
      return SmallVector<Value>{next};
    })[0];
  }

  Value multiplyTap(ArrayRef<Value> input, ArrayRef<Value> weight, Value sum) {
    const WindowDim &window = windows.back();
    Value mask = insideMask(input.back());
    for (size_t d = 2; d + 1 < input.size() && op.getPadValue(); ++d) {
      // If the tap is outside in another dim, all lanes are padding. As unsigned numbers, negative positions are large.
      Value inside = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::ult, input[d], kb.index(windows[d - 2].input));
      mask = arith::AndIOp::create(kb.b, mask, kb.splat(inside, lanes));
    }
    // The column may be negative, and block arithmetic is unsigned: the column's offset is therefore added separately.
    SmallVector<Value> start(input);
    start.back() = kb.constant(0);
    Dim columnStride = laneStride(x, x.getRank() - 1);
    Value offset = kb.add(Strides(x).offset(kb, start), kb.mul(input.back(), columnStride));
    Value values = loadLanes(kb, x.getElementType(), kb.operand(0), columnStride * window.stride,
                             VectorStep{{}, mask, lanes}, offset);
    if (op.getPadValue()) {
      Value padding = arith::ConstantOp::create(kb.b, kb.b.getI8IntegerAttr(static_cast<int8_t>(op.getPadValue())));
      values = arith::SelectOp::create(kb.b, mask, values, kb.splat(padding, lanes));
    }
    Value factor = kb.loadElements(w.getElementType(), 0, kb.operand(1), Strides(w).offset(kb, weight));
    factor = scaled(convertElement(kb, factor, w.getElementType(), accumulator), weight);
    return emitMultiplyAdd(kb, convertElement(kb, values, x.getElementType(), accumulator), kb.splat(factor, lanes),
                           sum);
  }

  /// Multiplies an integer weight of a float convolution by its scale. |at| holds the output channel, the input
  /// channel, ...
  Value scaled(Value factor, ArrayRef<Value> at) {
    if (!op.getScales()) {
      return factor;
    }
    Value row = kb.div(at[1], std::max<int64_t>(1, op.getWeightGroup()));
    Value scale =
        kb.loadElements(cast<RankedTensorType>(op.getScales().getType()).getElementType(), 0,
                        kb.operand(op->getNumOperands() - 1), kb.add(kb.mul(row, Shape(w)[0].value()), at[0]));
    return arith::MulFOp::create(kb.b, factor, scale);
  }

  /// Returns a mask of the lanes l with 0 <= column + l * stride < input width.
  Value insideMask(Value column) {
    const WindowDim &window = windows.back();
    auto type = VectorType::get({int64_t(lanes)}, kb.b.getI32Type());
    SmallVector<int32_t> steps;
    for (unsigned lane = 0; lane < lanes; ++lane) {
      steps.push_back(lane * window.stride);
    }
    Value iota = arith::ConstantOp::create(kb.b, DenseElementsAttr::get(type, ArrayRef<int32_t>(steps)));
    Value start = kb.splat(arith::TruncIOp::create(kb.b, kb.b.getI32Type(), column), lanes);
    Value columns = arith::AddIOp::create(kb.b, start, iota);
    Value width = kb.splat(narrowIndex(kb, window.input), lanes);
    return arith::CmpIOp::create(kb.b, arith::CmpIPredicate::ult, columns, width); // negative is large
  }

  KernelBuilder &kb;
  device::ConvOp op;
  RankedTensorType x, w, y;
  EpilogueStore epilogue;
  Type accumulator;
  SmallVector<WindowDim> windows;
  unsigned lanes;
};

struct ConvModel : KernelInterface::ExternalModel<ConvModel, device::ConvOp> {
  bool acceptsOpenSizes(Operation *op) const {
    Shape x(op->getOperand(0)), w(op->getOperand(1)), y(op->getResult(0));
    return x[1].isKnown() && w.isKnown() && y[1].isKnown() && sameSize(x[0], y[0]) &&
           broadcastsProvably(cast<device::EpilogueInterface>(op));
  }
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    auto conv = cast<device::ConvOp>(op);
    if (conv.getPacking()) {
      return op->emitError("internal error: the loop kernel does not support packed weights");
    }
    bool isPlain = !device::isBlocked(kb.operandType(0)) && !device::isBlocked(kb.resultType()) && !hasOpenSizes(op);
    if (kb.target.tileIsThread && isPlain && numElements(kb.operandType(1)) * numElements(kb.resultType()) > 0) {
      emitConvByThreads(kb, conv);
    } else {
      GenericConv(kb, conv).emit();
    }
    return success();
  }
};

} // namespace

void attachConvModels(MLIRContext *context) { device::ConvOp::attachInterface<ConvModel>(*context); }

} // namespace tessera::kernels
