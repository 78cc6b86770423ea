//===- RunTimeSizes.cpp - Sizes that a run computes -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/RunTimeSizes.h"

#include "top_dialect/IR/BindDims.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Import/Onnx/ImportError.h"

#include "llvm/Support/FormatVariadic.h"

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

bool isIntegerVector(Value value) {
  auto type = mlir::cast<mlir::RankedTensorType>(value.getType());
  mlir::Type element = type.getElementType();
  return type.getRank() <= 1 && (element.isSignlessInteger(64) || element.isSignlessInteger(32)) &&
         knownNumElements(type);
}

/// Returns the operand's element that |op| moves to element |index| of its result; a null tensor for other ops.
Element sourceOf(mlir::Operation *op, int64_t index) {
  if (auto reshape = mlir::dyn_cast<ReshapeOp>(op)) {
    return {reshape.getX(), index};
  }
  if (auto cast = mlir::dyn_cast<CastOp>(op)) {
    return {cast.getX(), index};
  }
  if (auto concat = mlir::dyn_cast<ConcatOp>(op)) {
    for (Value part : concat.getInputs()) {
      int64_t size = knownNumElements(part).value_or(INT64_MAX);
      if (index < size) {
        return {part, index};
      }
      index -= size;
    }
  }
  if (auto slice = mlir::dyn_cast<SliceOp>(op); slice && slice.getStarts().size() == 1) {
    int64_t at = slice.getStarts()[0] + index * slice.getSteps()[0];
    return {at >= 0 ? slice.getX() : Value(), at};
  }
  if (auto gather = mlir::dyn_cast<GatherOp>(op)) {
    auto indices = getConstantInts(gather.getIndices());
    if (indices && Shape(gather.getX()).rank() == 1) {
      int64_t at = (*indices)[indices->size() == 1 ? 0 : index], size = knownNumElements(gather.getX()).value_or(0);
      at += at < 0 ? size : 0;
      return {at >= 0 && at < size ? gather.getX() : Value(), at};
    }
  }
  if (auto expand = mlir::dyn_cast<ExpandOp>(op); expand && knownNumElements(expand.getX()) == 1) {
    return {expand.getX(), 0};
  }
  return {};
}

} // namespace

Element traceElement(Value tensor, int64_t index) {
  while (mlir::Operation *op = tensor.getDefiningOp()) {
    Element source = sourceOf(op, index);
    if (!source.tensor || !isIntegerVector(source.tensor)) {
      break;
    }
    tensor = source.tensor, index = source.index;
  }
  return {tensor, index};
}

Dim findBound(Element element) {
  for (mlir::Operation *user : element.tensor.getUsers()) {
    auto bind = mlir::dyn_cast<BindOp>(user);
    if (bind && static_cast<int64_t>(bind.getIndex()) == element.index) {
      return sizeOf(bind.getSymbol());
    }
    auto cast = mlir::dyn_cast<CastOp>(user); // only i64 elements are bound
    if (cast && mlir::cast<mlir::RankedTensorType>(cast.getY().getType()).getElementType().isSignlessInteger(64)) {
      if (Dim found = findBound({cast.getY(), element.index}); !found.isUnknown()) {
        return found;
      }
    }
  }
  return mlir::ShapedType::kDynamic;
}

Dim RunTimeSizes::bind(mlir::OpBuilder &builder, mlir::Location loc, Element element, llvm::StringRef name,
                       DimRange byDefault) {
  std::string symbolName = name.str();
  if (unsigned count = names[name]++) {
    symbolName += "'" + std::to_string(count);
  }
  auto given = ranges.byName.find(symbolName);
  DimRange range = given == ranges.byName.end() ? byDefault : given->second;
  range.max = std::max(range.max, byDefault.min + 1);
  if (given != ranges.byName.end() && (range.min == range.max || range.divisor != 1)) {
    unused[symbolName] = llvm::formatv("--dims gives '{0}' a single size or a divisor, but a run computes it: give a "
                                       "range MIN..MAX, or make an input a constant with --input_values",
                                       symbolName);
    return byDefault.max;
  }
  unused.erase(symbolName);
  if (opened) {
    opened(symbolName, range);
  }
  auto symbol = SizeSymbolAttr::get(builder.getContext(), symbolName, range.min, range.max, range.likely);
  BindOp::create(builder, loc, element.tensor, element.index, symbol);
  return sizeOf(symbol);
}

llvm::Error RunTimeSizes::checkNames() const {
  return unused.empty() ? llvm::Error::success() : fail(unused.begin()->second);
}

} // namespace tessera::top::onnx_import
