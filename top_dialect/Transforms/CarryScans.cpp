//===- CarryScans.cpp - Stacked values of loops as carried values ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Transforms/CarryScans.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/HostTensor.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/SizeUpdates.h"
#include "top_dialect/IR/SymbolicLists.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Transforms/Values.h"

namespace tessera::top {
using namespace mlir;

/// Returns a tensor of zeros. Only the scalar is a constant, so that a large tensor does not grow the file.
static Value createZeros(OpBuilder &builder, Location loc, RankedTensorType type) {
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Value zero = createConstant(builder, loc, scalar, std::vector<char>(elementBytes(type.getElementType())), "zero");
  SizeList list = makeSizeList(Shape(type).dims(), builder.getContext());
  auto zeros = ExpandOp::create(builder, loc, type, zero, Value(), list.numbers);
  setDims(zeros, kDimsAttr, list.dims);
  return zeros;
}

/// Returns |stacked| with |slice| at the index |iteration| of its first dim.
static Value insertSlice(OpBuilder &builder, Location loc, Value stacked, Value slice, Value iteration) {
  SmallVector<Dim> row{Dim(1)};
  llvm::append_range(row, Shape(slice).dims());
  Value index = createReshape(builder, loc, iteration, SmallVector<int64_t>{1, 1});
  Value update = createReshape(builder, loc, slice, tensorType(row, typeOf(slice).getElementType()));
  return ScatterNdOp::create(builder, loc, stacked.getType(), stacked, index, update, ScatterReduction::none);
}

/// Returns the type in which a loop carries the slices of |stacked|: with room for the largest number of passes.
static RankedTensorType carriedType(LoopOp loop, Value stacked) {
  SmallVector<Dim> sizes = Shape(stacked).dims();
  sizes.front() = loop->hasAttr(kOpenPassesAttr) ? Dim(maxOf(sizes.front())) : sizes.front();
  return tensorType(sizes, typeOf(stacked).getElementType());
}

/// Cuts |all| to the slices that the passes have stored, and replaces |stacked| by them. |passes|: their number.
static void cutToPasses(OpBuilder &builder, Value stacked, Value all, Value passes) {
  Location loc = stacked.getLoc();
  Shape sizes = stacked;
  BindOp::create(builder, loc, passes, 0, asSymbol(sizes[0]));
  SizeList list = makeSizeList(sizes.dims(), builder.getContext());
  SmallVector<int64_t> starts(sizes.rank(), 0), steps(sizes.rank(), 1);
  auto slice = SliceOp::create(builder, loc, stacked.getType(), all, starts, list.numbers, steps);
  setDims(slice, kDimsAttr, list.dims);
  setTensorNames(slice, {getTensorName(stacked)});
  stacked.replaceAllUsesWith(slice);
}

LoopOp carryScans(LoopOp loop) {
  size_t carried = loop.getInit().size();
  if (loop.getNumResults() == carried) {
    return loop;
  }
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  SmallVector<Value> init(loop.getInit());
  Block &body = loop.getBody().front();
  Operation *yield = body.getTerminator();
  ValueRange stacked = loop.getResults().drop_front(carried);
  SmallVector<Type> types(loop.getResultTypes().begin(), loop.getResultTypes().begin() + carried);
  SmallVector<Value> results;
  for (Value result : stacked) {
    builder.setInsertionPoint(loop);
    types.push_back(carriedType(loop, result));
    init.push_back(createZeros(builder, loc, cast<RankedTensorType>(types.back())));
    Value argument = body.addArgument(types.back(), loc);
    builder.setInsertionPoint(yield);
    Value slice = yield->getOperand(unsigned(1 + carried + results.size()));
    results.push_back(insertSlice(builder, loc, argument, slice, body.getArgument(0)));
  }
  bool isCounted = loop->hasAttr(kOpenPassesAttr);
  if (isCounted) { // the condition may end the loop before the trip count does
    builder.setInsertionPoint(loop);
    init.push_back(createScalar(builder, loc, builder.getI64Type(), 0));
    types.push_back(init.back().getType());
    Value count = body.addArgument(types.back(), loc);
    builder.setInsertionPoint(yield);
    Value one = createScalar(builder, loc, builder.getI64Type(), 1);
    results.push_back(AddOp::create(builder, loc, types.back(), count, one));
  }
  yield->setOperands(unsigned(1 + carried), unsigned(yield->getNumOperands() - 1 - carried), results);
  builder.setInsertionPoint(loop);
  auto result = LoopOp::create(builder, loc, types, loop.getTripCount(), loop.getCond(), ValueRange(init));
  result.getBody().takeBody(loop.getBody());
  if (!isCounted) {
    copyNames(loop, result);
  }
  for (auto [i, from] : llvm::enumerate(loop.getResults())) {
    Value to = result.getResult(unsigned(i));
    if (isCounted && i >= carried) {
      cutToPasses(builder, from, to, result.getResults().back());
    } else {
      from.replaceAllUsesWith(to);
    }
  }
  loop.erase();
  return result;
}

} // namespace tessera::top
