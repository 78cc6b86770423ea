//===- CumSum.cpp - Running sums on the NPU -------------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Sums are computed step by step along the axis, in the specified order: a triangular matrix on the matrix unit would
// add floats in another order. All other dims of a tile take a step at once.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Emission/Elementwise/WideIntegers.h"
#include "codegen/Npu/Emission/EmissionInterface.h"
#include "codegen/Npu/Emission/Models.h"
#include "codegen/Npu/Vector/Intervals.h"

using namespace mlir;

namespace tessera::npu {
using bmodel::npu::Op;
namespace {

/// Maximum number of steps: each is a command per tile.
constexpr int64_t kMostSteps = 1024;

/// Views the tensor with the axis along h and as many lanes in use as possible.
View viewOf(ArrayRef<int64_t> dims, int64_t axis, int64_t lanes) {
  int64_t outer = ShapedType::getNumElements(dims.take_front(axis)), size = dims[axis];
  int64_t inner = ShapedType::getNumElements(dims.drop_front(axis + 1)), columns = 1;
  if (outer >= lanes) {
    return {{1, outer, size, inner}, {0, size * inner, inner, 1}};
  }
  for (int64_t divisor = 1; divisor <= std::min(lanes, inner); ++divisor) {
    columns = inner % divisor == 0 ? divisor : columns;
  }
  if (columns <= outer) {
    return {{1, outer, size, inner}, {0, size * inner, inner, 1}};
  }
  return {{outer, columns, size, inner / columns}, {size * inner, inner / columns, inner, 1}};
}

/// Checks that the vector unit can compute the sums.
llvm::Error checkSums(device::CumSumOp op, int64_t size) {
  Type element = npu::typeOf(op.getX()).getElementType();
  if (!element.isF32() && !element.isSignlessInteger(32) && !element.isSignlessInteger(64)) {
    return reject("computes running sums of a type other than f32, i32 and i64, which is not supported yet");
  }
  if (size > kMostSteps) {
    return reject("computes running sums of " + llvm::Twine(size) + " elements; the maximum is " +
                  llvm::Twine(kMostSteps));
  }
  Interval sums = intervalOfRunningSums(op);
  if (!element.isF32() && !sums.within(-(1 << 24), 1 << 24)) {
    return reject("computes running sums that may exceed 2^24");
  }
  return llvm::Error::success();
}

/// Appends the steps of one tile in local memory.
void appendSteps(device::CumSumOp op, const TileView &x, const TileView &y, EmissionContext &context, Tile &tile) {
  const Instructions begin = {{Op::constant, 1, 0, 0, 0}, {Op::add, 0, 0, 1, 0}}; // -0 becomes 0
  const Instructions clear = {{Op::constant, 0, 0, 0, 0}}, add = {{Op::add, 0, 0, 1, 0}};
  uint32_t size = y.dim(2);
  auto at = [&](const TileView &of, uint32_t step) {
    return slice(of, 2, op.getReverse() ? size - 1 - step : step, 1, context.chip);
  };
  for (uint32_t step = 0; step < size; ++step) {
    if (step == 0) {
      compute(context.stream, op.getExclusive() ? clear : begin, at(y, 0), {at(x, 0)}, tile);
    } else {
      compute(context.stream, add, at(y, step), {at(y, step - 1), at(x, op.getExclusive() ? step - 1 : step)}, tile);
    }
  }
}

llvm::Error emitCumSum(device::CumSumOp op, EmissionContext &context) {
  ArrayRef<int64_t> dims = npu::typeOf(op.getX()).getShape();
  if (llvm::Error error = checkSums(op, dims[op.getAxis()])) {
    return error;
  }
  const Chip &chip = context.chip;
  const bool wide = isWide(op.getY());
  View view = viewOf(dims, op.getAxis(), chip.lanes);
  auto place = [&](Value value) {
    return wide ? placeWide(value, view.sizes, view.strides, 0, context)
                : context.operands.place(value, view.sizes, view.strides);
  };
  llvm::Expected<TileView> x = place(op.getX()), y = place(op.getY());
  if (!x || !y) {
    return llvm::joinErrors(x.takeError(), y.takeError());
  }
  auto build = [&](const Shape &begin, const Shape &size, LocalBudget &localBudget, Tile &tile) {
    TileView from = tileOf(*x, begin, size, chip), to = tileOf(*y, begin, size, chip);
    localBudget.lane = laneOf({from, to});
    from = wide ? loadWide(from, context.stream, localBudget, tile) : load(from, localBudget, tile);
    TileView result = wide ? resultOfWide(to, localBudget) : resultOf(to, localBudget);
    appendSteps(op, from, result, context, tile);
    if (wide) {
      storeWide(result, to, context.stream, tile);
    } else {
      store(result, to, tile);
    }
  };
  return context.tiler.append(y->shape, Shape{{1, chip.lanes, 0, 1}}, build);
}

struct CumSumModel : EmissionInterface::ExternalModel<CumSumModel, device::CumSumOp> {
  llvm::Error emit(Operation *op, EmissionContext &context) const {
    return emitCumSum(cast<device::CumSumOp>(op), context);
  }
};

} // namespace

void attachCumSumModels(MLIRContext *context) { device::CumSumOp::attachInterface<CumSumModel>(*context); }

} // namespace tessera::npu
