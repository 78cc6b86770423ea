//===- RunTimeSizes.cpp - Sizes that a run computes -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Sizes/RunTimeSizes.h"

#include "top_dialect/IR/BindDims.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/SizeUpdates.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Import/Onnx/Model/ImportError.h"

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

/// Returns whether a symbol that |bind| gives to an element of |tensor| is known to ops that are imported now, or that
/// follow |tensor| in its block.
static bool isVisible(BindOp bind, Value tensor) {
  mlir::Block *block = bind->getBlock();
  return block == tensor.getParentBlock() || block->empty() || !block->back().hasTrait<mlir::OpTrait::IsTerminator>();
}

Dim findBound(Element element) {
  for (mlir::Operation *user : element.tensor.getUsers()) {
    auto bind = mlir::dyn_cast<BindOp>(user);
    if (bind && static_cast<int64_t>(bind.getIndex()) == element.index && isVisible(bind, element.tensor)) {
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

std::string nameOf(Element element, llvm::StringRef otherName) {
  auto argument = mlir::dyn_cast<mlir::BlockArgument>(element.tensor);
  llvm::StringRef name = argument ? getInputName(argument) : getTensorName(element.tensor);
  return llvm::formatv("{0}[{1}]", name.empty() ? otherName : name, element.index);
}

std::optional<DimRange> RunTimeSizes::givenRange(llvm::StringRef name) const {
  auto given = ranges.byName.find(name.str());
  return given == ranges.byName.end() ? std::nullopt : std::optional(given->second);
}

std::string RunTimeSizes::takeName(llvm::StringRef wanted) {
  unsigned count = names[wanted]++;
  return count ? llvm::formatv("{0}'{1}", wanted, count).str() : wanted.str();
}

Dim RunTimeSizes::declare(mlir::MLIRContext *context, llvm::StringRef name, DimRange byDefault) {
  std::string symbolName = takeName(name);
  auto given = givenRange(symbolName);
  DimRange range = given.value_or(byDefault);
  range.max = std::max(range.max, byDefault.min + 1);
  if (given && (range.min == range.max || range.divisor != 1)) {
    unused[symbolName] = llvm::formatv("--dims gives '{0}' a single size or a divisor, but a run computes it: give a "
                                       "range MIN..MAX, or make an input a constant with --input_values",
                                       symbolName);
    return byDefault.max;
  }
  unused.erase(symbolName);
  declared[symbolName] = range;
  return Dim::symbol(context, symbolName, range.min, range.max, range.likely);
}

Dim RunTimeSizes::bind(mlir::OpBuilder &builder, mlir::Location loc, Element element, llvm::StringRef name,
                       DimRange byDefault) {
  Dim size = declare(builder.getContext(), name, byDefault);
  if (size.isSymbolic()) {
    BindOp::create(builder, loc, element.tensor, element.index, asSymbol(size));
  }
  return size;
}

llvm::Error RunTimeSizes::finish() const {
  for (const auto &[name, range] : declared) {
    opened ? opened(name, range) : void();
  }
  return unused.empty() ? llvm::Error::success() : fail(unused.begin()->second);
}

} // namespace tessera::top::onnx_import
