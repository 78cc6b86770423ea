//===- SymbolicLists.cpp - Lists of sizes in attributes of ops ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/SymbolicLists.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::top;

SizeList tessera::top::makeSizeList(ArrayRef<Dim> sizes, MLIRContext *context) {
  SizeList list;
  for (Dim size : sizes) {
    list.numbers.push_back(size.isKnown() ? size.value() : -1);
  }
  RankedTensorType type = tensorType(sizes, IntegerType::get(context, 64));
  list.dims = dyn_cast_or_null<DimsAttr>(type.getEncoding());
  return list;
}

void tessera::top::setDims(Operation *op, StringRef name, DimsAttr dims) {
  if (dims) {
    op->setAttr(name, dims);
  } else {
    op->removeAttr(name);
  }
}

bool tessera::top::dependsOnSizes(Operation *op) {
  auto isSymbolic = [](Value value) {
    return llvm::any_of(Shape(value).dims(), [](Dim size) { return size.isSymbolic(); });
  };
  return op->hasAttr(kStartDimsAttr) || llvm::any_of(op->getResults(), isSymbolic);
}

Dim tessera::top::sizeAt(Operation *op, StringRef name, ArrayRef<int64_t> numbers, size_t i) {
  if (numbers[i] != -1) {
    return numbers[i];
  }
  auto dims = op->getAttrOfType<DimsAttr>(name);
  return dims && i < dims.getSizes().size() ? Dim(dims.getSizes()[i]) : Dim(ShapedType::kDynamic);
}
