//===- ReferenceMoves.cpp - Ops that move or create elements ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Reference/Support.h"

#include <cmath>

using namespace tessera::top;
using namespace tessera::top::reference;
using llvm::LogicalResult;
using llvm::success;

LogicalResult ReshapeOp::evaluate(Inputs inputs, Outputs outputs) {
  llvm::copy(inputs[0]->getBytes(), outputs[0].getBytes().begin());
  return success();
}

LogicalResult TransposeOp::evaluate(Inputs inputs, Outputs outputs) {
  Dims dense = rowMajorStrides(inputs[0]->getShape()), strides;
  for (int64_t from : getPerm()) {
    strides.push_back(dense[from]);
  }
  moveStrided(*inputs[0], outputs[0], 0, strides);
  return success();
}

LogicalResult ConcatOp::evaluate(Inputs inputs, Outputs outputs) {
  AxisView result(outputs[0].getShape(), getAxis());
  int64_t size = elementBytes(outputs[0].getElementType()), done = 0;
  char *to = outputs[0].getBytes().data();
  for (const HostTensor *input : inputs) {
    AxisView view(input->getShape(), getAxis());
    int64_t run = view.size * view.inner * size;
    for (int64_t o = 0; o < view.outer && run; ++o) {
      std::memcpy(to + result.at(o, done, 0) * size, input->getBytes().data() + o * run, run);
    }
    done += view.size;
  }
  return success();
}

LogicalResult SliceOp::evaluate(Inputs inputs, Outputs outputs) {
  Dims dense = rowMajorStrides(inputs[0]->getShape()), strides;
  for (auto [stride, step] : llvm::zip_equal(dense, getSteps())) {
    strides.push_back(stride * step);
  }
  moveStrided(*inputs[0], outputs[0], dot(getStarts(), dense), strides);
  return success();
}

namespace {

/// Returns the source of position `i`, relative to the first kept element of a dim of `size`; -1 for the fill value.
int64_t paddedSource(PadMode mode, int64_t i, int64_t size) {
  if (i >= 0 && i < size) {
    return i;
  }
  switch (mode) {
  case PadMode::constant:
    return -1;
  case PadMode::edge:
    return i < 0 ? 0 : size - 1;
  case PadMode::wrap:
    return (i % size + size) % size;
  case PadMode::reflect: {
    if (size == 1) {
      return 0;
    }
    int64_t period = 2 * (size - 1), phase = (i % period + period) % period;
    return phase < size ? phase : period - phase;
  }
  }
  return -1;
}

} // namespace

LogicalResult PadOp::evaluate(Inputs inputs, Outputs outputs) {
  DimsRef shape = inputs[0]->getShape(), pads = getPads();
  Dims strides = rowMajorStrides(shape);
  size_t rank = shape.size();
  fill(outputs[0], getValue().convertToDouble());
  moveElements(*inputs[0], outputs[0], [&](DimsRef index) {
    int64_t linear = 0;
    for (size_t d = 0; d < rank; ++d) {
      // Negative pads crop first; the rest is then extended.
      int64_t cutFront = std::max<int64_t>(-pads[d], 0);
      int64_t kept = shape[d] - cutFront - std::max<int64_t>(-pads[rank + d], 0);
      int64_t addFront = std::max<int64_t>(pads[d], 0);
      int64_t i = paddedSource(getMode(), index[d] - addFront, kept);
      linear = i < 0 || linear < 0 ? -1 : linear + (i + cutFront) * strides[d];
    }
    return linear;
  });
  return success();
}

LogicalResult ExpandOp::evaluate(Inputs inputs, Outputs outputs) {
  moveStrided(*inputs[0], outputs[0], 0, broadcastStrides(inputs[0]->getShape(), outputs[0].getShape()));
  return success();
}

LogicalResult TileOp::evaluate(Inputs inputs, Outputs outputs) {
  DimsRef shape = inputs[0]->getShape();
  Dims strides = rowMajorStrides(shape);
  moveElements(*inputs[0], outputs[0], [&](DimsRef index) {
    int64_t linear = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      linear += index[d] % shape[d] * strides[d];
    }
    return linear;
  });
  return success();
}

LogicalResult ShapeOp::evaluate(Inputs inputs, Outputs outputs) {
  DimsRef dims = inputs[0]->getShape().slice(getStart(), getEnd() - getStart());
  write(std::vector<int64_t>(dims.begin(), dims.end()), outputs[0]);
  return success();
}

LogicalResult RangeOp::evaluate(Inputs inputs, Outputs outputs) {
  return withNumbers(inputs[0]->getElementType(), [&](auto zero) -> LogicalResult {
    using T = decltype(zero);
    T start = read<T>(*inputs[0])[0], delta = read<T>(*inputs[2])[0];
    std::vector<T> y(outputs[0].getNumElements());
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] = start + static_cast<T>(i) * delta;
    }
    write(y, outputs[0]);
    return success();
  });
}

LogicalResult ConstantOfShapeOp::evaluate(Inputs inputs, Outputs outputs) {
  mlir::Attribute value = getValue().getValues<mlir::Attribute>()[0];
  if (auto real = llvm::dyn_cast<mlir::FloatAttr>(value)) {
    fill(outputs[0], real.getValueAsDouble());
    return success();
  }
  uint64_t bits = llvm::cast<mlir::IntegerAttr>(value).getValue().getZExtValue();
  write(std::vector<uint64_t>(outputs[0].getNumElements(), bits), outputs[0]);
  return success();
}

LogicalResult TriluOp::evaluate(Inputs inputs, Outputs outputs) {
  size_t rank = inputs[0]->getShape().size();
  int64_t linear = -1, k = getK();
  moveElements(*inputs[0], outputs[0], [&](DimsRef index) -> int64_t {
    ++linear;
    int64_t diagonal = index[rank - 1] - index[rank - 2];
    return (getUpper() ? diagonal >= k : diagonal <= k) ? linear : -1;
  });
  return success();
}

LogicalResult DepthToSpaceOp::evaluate(Inputs inputs, Outputs outputs) {
  DimsRef shape = outputs[0].getShape();
  Dims strides = rowMajorStrides(inputs[0]->getShape());
  int64_t block = getBlockSize(), channels = shape[1];
  moveElements(*inputs[0], outputs[0], [&](DimsRef index) {
    int64_t c = index[1], h = index[2], w = index[3];
    int64_t inBlock = h % block * block + w % block;
    int64_t from = getCrd() ? c * block * block + inBlock : inBlock * channels + c;
    return dot({index[0], from, h / block, w / block}, strides);
  });
  return success();
}

LogicalResult SpaceToDepthOp::evaluate(Inputs inputs, Outputs outputs) {
  Dims strides = rowMajorStrides(inputs[0]->getShape());
  int64_t block = getBlockSize(), channels = inputs[0]->getShape()[1];
  moveElements(*inputs[0], outputs[0], [&](DimsRef index) {
    int64_t inBlock = index[1] / channels, c = index[1] % channels;
    int64_t h = index[2] * block + inBlock / block, w = index[3] * block + inBlock % block;
    return dot({index[0], c, h, w}, strides);
  });
  return success();
}
