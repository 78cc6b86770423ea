//===- ReferenceMove.cpp - Naive evaluation of the move family ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceMoveOps.h"
#include "device_dialect/IR/Pieces.h"
#include "device_dialect/Reference/AsTop.h"
#include "device_dialect/Reference/FloatOps.h"
#include "top_dialect/IR/TopOps.h"

using namespace mlir;
using namespace tessera::device;
using namespace tessera::device::reference;
using tessera::top::HostTensor;
namespace top = tessera::top;
namespace ref = tessera::top::reference;

LogicalResult CopyOp::evaluate(Inputs inputs, Outputs outputs) {
  if (getFill()) {
    ref::fill(outputs[0], getFill()->convertToDouble());
  }
  for (auto piece : getPieces().getAsRange<PieceAttr>()) {
    if (!piece.isKnown()) {
      return emitOpError("has a region whose size or offset is not known here: ") << piece;
    }
    const HostTensor &source = *inputs[piece.getSource()];
    movePiece(piece, source.getBytes().data(), source.getShape(), outputs[0].getBytes().data(), outputs[0].getShape(),
              top::elementBytes(source.getElementType()));
  }
  return success();
}

LogicalResult ReshapeOp::evaluate(Inputs inputs, Outputs outputs) {
  llvm::copy(inputs[0]->getBytes(), outputs[0].getBytes().begin());
  return success();
}

//===----------------------------------------------------------------------===//
// gather, scatter
//===----------------------------------------------------------------------===//

/// Clamps indices out of range; index k of a tuple has bound `bounds[k]`.
static HostTensor clampIndices(const HostTensor &indices, ArrayRef<int64_t> bounds) {
  std::vector<int64_t> values = ref::read<int64_t>(indices);
  for (auto [i, value] : llvm::enumerate(values)) {
    int64_t bound = bounds[i % bounds.size()];
    value = std::clamp<int64_t>(value < 0 ? value + bound : value, 0, bound - 1);
  }
  HostTensor result(indices.getElementType(), indices.getShape());
  ref::write(values, result);
  return result;
}

LogicalResult GatherOp::evaluate(Inputs inputs, Outputs outputs) {
  HostTensor indices = clampIndices(*inputs[1], inputs[0]->getShape()[getAxis()]);
  return evaluateAs<top::GatherOp>(*this, {inputs[0], &indices}, outputs, getX(), getIndices(), getAxisAttr());
}

LogicalResult GatherElementsOp::evaluate(Inputs inputs, Outputs outputs) {
  HostTensor indices = clampIndices(*inputs[1], inputs[0]->getShape()[getAxis()]);
  return evaluateAs<top::GatherElementsOp>(*this, {inputs[0], &indices}, outputs, getX(), getIndices(), getAxisAttr());
}

LogicalResult GatherNdOp::evaluate(Inputs inputs, Outputs outputs) {
  ArrayRef<int64_t> bounds = inputs[0]->getShape().slice(getBatchDims(), inputs[1]->getShape().back());
  HostTensor indices = clampIndices(*inputs[1], bounds);
  return evaluateAs<top::GatherNdOp>(*this, {inputs[0], &indices}, outputs, getX(), getIndices(), getBatchDimsAttr());
}

LogicalResult ScatterOp::evaluate(Inputs inputs, Outputs outputs) {
  ArrayRef<int64_t> shape = inputs[0]->getShape();
  ArrayRef<int64_t> bounds = getNd() ? shape.take_front(inputs[1]->getShape().back()) : shape.slice(getAxis(), 1);
  HostTensor indices = clampIndices(*inputs[1], bounds);
  auto reduction = top::ScatterReductionAttr::get(getContext(), *top::symbolizeScatterReduction(getReduction()));
  const HostTensor *clamped[] = {inputs[0], &indices, inputs[2]};
  if (getNd()) {
    return evaluateAs<top::ScatterNdOp>(*this, clamped, outputs, getX(), getIndices(), getUpdates(), reduction);
  }
  return evaluateAs<top::ScatterElementsOp>(*this, clamped, outputs, getX(), getIndices(), getUpdates(), getAxisAttr(),
                                            reduction);
}

LogicalResult InsertOp::evaluate(Inputs inputs, Outputs outputs) {
  Dim offset = Dim(getOffset());
  if (!offset.isKnown()) {
    return emitOpError("writes at an offset that is known at run time only");
  }
  outputs[0] = *inputs[0];
  ArrayRef<int64_t> dims = inputs[0]->getShape();
  Piece piece = Piece::identity(0, inputs[1]->getShape());
  piece.dstOffsets[getAxis()] = offset.value();
  piece.sizes[getAxis()] = std::clamp<int64_t>(dims[getAxis()] - offset.value(), 0, piece.sizes[getAxis()]);
  movePiece(piece.get(getContext()), inputs[1]->getBytes().data(), inputs[1]->getShape(), outputs[0].getBytes().data(),
            dims, top::elementBytes(inputs[0]->getElementType()));
  return success();
}

//===----------------------------------------------------------------------===//
// resize
//===----------------------------------------------------------------------===//

/// Resizes dim `axis` of `x` by its tables and updates `shape`, the dims of `x`.
static std::vector<double> resizeAxis(const std::vector<double> &x, ref::Dims &shape, int64_t axis,
                                      const HostTensor &index, const HostTensor &weight) {
  ref::AxisView view(shape, axis);
  int64_t outSize = index.getShape()[0], taps = index.getShape()[1];
  ArrayRef<int32_t> from = index.data<int32_t>();
  ArrayRef<float> weights = weight.data<float>();
  std::vector<double> y(view.outer * outSize * view.inner, 0.0);
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t t = 0; t < outSize * taps; ++t) {
      const double *source = &x[view.at(o, from[t], 0)];
      double *target = &y[(o * outSize + t / taps) * view.inner];
      for (int64_t i = 0; i < view.inner; ++i) {
        target[i] += weights[t] * source[i];
      }
    }
  }
  shape[axis] = outSize;
  return y;
}

/// Resizes with one tap per position, which only moves elements and so supports every type.
static void moveAxis(const HostTensor &x, HostTensor &y, ArrayRef<int64_t> axes, Inputs tables) {
  ref::Dims strides = ref::rowMajorStrides(x.getShape());
  ref::moveElements(x, y, [&](ref::DimsRef index) {
    int64_t linear = ref::dot(index, strides);
    for (auto [i, axis] : llvm::enumerate(axes)) {
      linear += (tables[2 * i]->data<int32_t>()[index[axis]] - index[axis]) * strides[axis];
    }
    return linear;
  });
}

LogicalResult ResizeOp::evaluate(Inputs inputs, Outputs outputs) {
  Inputs tables = inputs.drop_front();
  if (!isa<FloatType>(inputs[0]->getElementType())) {
    moveAxis(*inputs[0], outputs[0], getAxes(), tables);
    return success();
  }
  if (fitSingle(inputs.take_front())) {
    Singles x(inputs.take_front());
    bool moves = true;
    for (size_t i = 0; i < tables.size(); i += 2) {
      moves &= tables[i]->getShape()[1] == 1;
    }
    inSingle(outputs[0], [&](HostTensor &y) {
      moves ? moveAxis(*Inputs(x)[0], y, getAxes(), tables) : resizeF32(*Inputs(x)[0], y, getAxes(), tables);
    });
    return success();
  }
  ref::Dims shape(inputs[0]->getShape());
  std::vector<double> values = ref::read<double>(*inputs[0]);
  for (auto [i, axis] : llvm::enumerate(getAxes())) {
    values = resizeAxis(values, shape, axis, *tables[2 * i], *tables[2 * i + 1]);
  }
  ref::write(values, outputs[0]);
  return success();
}

//===----------------------------------------------------------------------===//
// arg_reduce, topk, cumsum
//===----------------------------------------------------------------------===//

LogicalResult ArgReduceOp::evaluate(Inputs inputs, Outputs outputs) {
  Builder builder(getContext());
  return evaluateAs<top::ArgReduceOp>(*this, inputs, outputs, getX(), getAxisAttr(), getMinAttr(),
                                      builder.getBoolAttr(true), getSelectLastAttr());
}

LogicalResult TopKOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateAs<top::TopKOp>(*this, inputs, outputs, getX(), getKAttr(), getAxisAttr(), getLargestAttr());
}

LogicalResult NonMaxSuppressionOp::evaluate(Inputs inputs, Outputs outputs) {
  return evaluateAs<top::NonMaxSuppressionOp>(*this, inputs, outputs, getBoxes(), getScores(), getMaxBoxes(),
                                              getIouThreshold(), getScoreThreshold(), getKAttr(), getCenterAttr());
}

LogicalResult CumSumOp::evaluate(Inputs inputs, Outputs outputs) {
  if (fitSingle(inputs)) {
    inSingle(outputs[0], [&](HostTensor &y) {
      Singles x(inputs);
      cumulateF32(*Inputs(x)[0], y, getAxis(), getExclusive(), getReverse());
    });
    return success();
  }
  return evaluateAs<top::CumSumOp>(*this, inputs, outputs, getX(), getAxisAttr(), getExclusiveAttr(), getReverseAttr());
}
