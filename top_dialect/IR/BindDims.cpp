//===- BindDims.cpp - Replacement of symbols in a function ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/BindDims.h"

#include "top_dialect/IR/SymbolicLists.h"
#include "top_dialect/IR/TopCustomOps.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/TopOps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::top;

using Replace = llvm::function_ref<Dim(SizeSymbolAttr)>;

static Type replaceIn(Type type, Replace replace) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && !Shape(tensor).isKnown() ? substitute(tensor, replace) : type;
}

/// Replaces symbols in the expressions of a list. Returns the list's numbers, with those that became known.
static DenseI64ArrayAttr replaceInList(Operation *op, StringRef name, DenseI64ArrayAttr numbers, Replace replace) {
  SmallVector<Dim> sizes;
  for (int64_t i = 0; i < numbers.size(); ++i) {
    sizes.push_back(substitute(sizeAt(op, name, numbers, i), replace));
  }
  SizeList list = makeSizeList(sizes, op->getContext());
  setDims(op, name, list.dims);
  return DenseI64ArrayAttr::get(op->getContext(), list.numbers);
}

static void replaceInLists(Operation *op, Replace replace) {
  if (op->hasAttr(kDimsAttr)) {
    if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      reshape.setShapeAttr(replaceInList(op, kDimsAttr, reshape.getShapeAttr(), replace));
    } else if (auto expand = dyn_cast<ExpandOp>(op)) {
      expand.setShapeAttr(replaceInList(op, kDimsAttr, expand.getShapeAttr(), replace));
    } else if (auto slice = dyn_cast<SliceOp>(op)) {
      slice.setSizesAttr(replaceInList(op, kDimsAttr, slice.getSizesAttr(), replace));
    } else if (auto resize = dyn_cast<ResizeOp>(op)) {
      resize.setSizesAttr(replaceInList(op, kDimsAttr, resize.getSizesAttr(), replace));
    }
  }
  if (auto slice = dyn_cast<SliceOp>(op); slice && op->hasAttr(kStartDimsAttr)) {
    slice.setStartsAttr(replaceInList(op, kStartDimsAttr, slice.getStartsAttr(), replace));
  }
  if (auto custom = dyn_cast<CustomOp>(op)) {
    auto types = custom.getTypes().getAsValueRange<TypeAttr>();
    auto replaced = llvm::map_to_vector(types, [&](Type type) { return replaceIn(type, replace); });
    custom.setTypesAttr(Builder(op->getContext()).getTypeArrayAttr(replaced));
  }
}

const SizeAttributes *tessera::top::sizeAttributesOf(Operation *op) {
  return op->getDialect() ? op->getDialect()->getRegisteredInterface<SizeAttributes>() : nullptr;
}

void tessera::top::replaceSymbols(Operation *op, Replace replace) {
  for (OpResult result : op->getResults()) {
    result.setType(replaceIn(result.getType(), replace));
  }
  replaceInLists(op, replace);
  if (const SizeAttributes *attributes = sizeAttributesOf(op)) {
    attributes->replaceSymbols(op, replace);
  }
}

void tessera::top::replaceSymbols(func::FuncOp function, Replace replace) {
  function.walk([&](Operation *op) {
    replaceSymbols(op, replace);
    for (Region &region : op->getRegions()) {
      for (BlockArgument argument : region.getArguments()) {
        argument.setType(replaceIn(argument.getType(), replace));
      }
    }
  });
  auto replaceAll = [&](TypeRange types) {
    return llvm::map_to_vector(types, [&](Type type) { return replaceIn(type, replace); });
  };
  function.setType(FunctionType::get(function.getContext(), replaceAll(function.getArgumentTypes()),
                                     replaceAll(function.getResultTypes())));
}

llvm::SetVector<SizeSymbolAttr> tessera::top::symbolsOf(func::FuncOp function) {
  llvm::SetVector<SizeSymbolAttr> symbols;
  for (Type type : function.getArgumentTypes()) {
    if (auto tensor = dyn_cast<RankedTensorType>(type)) {
      collectSymbols(Shape(tensor), symbols);
    }
  }
  return symbols;
}

/// If |size| is a number times a symbol, returns both.
static std::optional<std::pair<SizeSymbolAttr, int64_t>> matchMultiple(Dim size) {
  SizeAttr attr = size.expression();
  if (!attr || attr.getMonomials().size() != 1 || attr.getMonomials().front().size() != 1) {
    return std::nullopt;
  }
  auto symbol = dyn_cast<SizeSymbolAttr>(attr.getMonomials().front()[0]);
  return symbol ? std::optional(std::pair(symbol, attr.getCoefficients().front())) : std::nullopt;
}

static StringRef argumentName(func::FuncOp function, unsigned i) {
  auto name = function.getArgAttrOfType<StringAttr>(i, TopDialect::kNameAttr);
  return name ? name.getValue() : "?";
}

LogicalResult tessera::top::readSymbols(func::FuncOp function, ArrayRef<SmallVector<int64_t>> shapes,
                                        llvm::DenseMap<Attribute, int64_t> &values) {
  for (auto [argument, actual] : llvm::zip_equal(function.getArguments(), shapes)) {
    for (auto [size, number] : llvm::zip_equal(Shape(argument).dims(), actual)) {
      if (auto multiple = matchMultiple(size)) {
        values.try_emplace(multiple->first, number / multiple->second);
      }
    }
  }
  for (auto [argument, actual] : llvm::zip_equal(function.getArguments(), shapes)) {
    for (auto [axis, size] : llvm::enumerate(Shape(argument).dims())) {
      bool isBound = true;
      Dim expected = substitute(size, [&](SizeSymbolAttr symbol) {
        auto value = values.find(symbol);
        isBound &= value != values.end();
        return value == values.end() ? Dim(ShapedType::kDynamic) : Dim(value->second);
      });
      SizeRange range = rangeOf(size);
      bool fits = isBound && expected.is(actual[axis]) && actual[axis] >= range.min && actual[axis] <= range.max;
      if (!size.isUnknown() && !fits) {
        return function.emitError("input '")
               << argumentName(function, argument.getArgNumber()) << "' has size " << actual[axis] << " in dim " << axis
               << "; the size is " << toText(size) << ", from " << range.min << " to " << range.max
               << (expected.isKnown() ? ", here " + toText(expected) : std::string());
      }
    }
  }
  return success();
}
