//===- CarryScans.cpp - Stacked values of loops as carried values ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Transforms/CarryScans.h"

#include "top_dialect/IR/HostTensor.h"
#include "top_dialect/IR/Names.h"
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
  SmallVector<Value> stacked;
  for (Value result : loop.getResults().drop_front(carried)) {
    builder.setInsertionPoint(loop);
    init.push_back(createZeros(builder, loc, cast<RankedTensorType>(result.getType())));
    Value argument = body.addArgument(result.getType(), loc);
    builder.setInsertionPoint(yield);
    Value slice = yield->getOperand(unsigned(1 + carried + stacked.size()));
    stacked.push_back(insertSlice(builder, loc, argument, slice, body.getArgument(0)));
  }
  yield->setOperands(unsigned(1 + carried), unsigned(stacked.size()), stacked);
  builder.setInsertionPoint(loop);
  auto result =
      LoopOp::create(builder, loc, loop.getResultTypes(), loop.getTripCount(), loop.getCond(), ValueRange(init));
  result.getBody().takeBody(loop.getBody());
  copyNames(loop, result);
  loop.replaceAllUsesWith(result.getResults());
  loop.erase();
  return result;
}

} // namespace tessera::top
