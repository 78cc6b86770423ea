//===- PrecisionAttributes.cpp - The assigned precisions in the IR --------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Precision/PrecisionAttributes.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopOps.h"

using namespace mlir;

namespace tessera::quant {
namespace {

std::optional<Precision> readPrecision(Attribute attribute) {
  auto text = dyn_cast_or_null<StringAttr>(attribute);
  return text ? parsePrecision(text.getValue()) : std::nullopt;
}

Precision functionPrecision(Operation *op) {
  auto function = op->getParentOfType<func::FuncOp>();
  return readPrecision(function ? function->getAttr(kPrecisionAttr) : Attribute()).value_or(Precision::F32);
}

} // namespace

bool needsPrecision(Operation *op) {
  return isa_and_present<top::TopDialect>(op->getDialect()) && op->getNumResults() &&
         !top::isConstant(op->getResult(0)) && !isa<top::DequantizeOp>(op) &&
         llvm::any_of(op->getResultTypes(), [](Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); });
}

Precision precisionOf(Operation *op) {
  std::optional<Precision> own = readPrecision(op->getAttr(kPrecisionAttr));
  return own ? *own : functionPrecision(op);
}

Precision requestedOf(Operation *op) {
  std::optional<Precision> own = readPrecision(op->getAttr(kRequestedAttr));
  return own ? *own : functionPrecision(op);
}

std::string reasonOf(Operation *op) {
  auto reason = op->getAttrOfType<StringAttr>(kReasonAttr);
  return reason && !reason.empty() ? reason.str() : ("its precision is " + toString(precisionOf(op))).str();
}

std::optional<Precision> storedAs(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    return readPrecision(function ? function.getArgAttr(argument.getArgNumber(), kStoresAttr) : Attribute());
  }
  auto result = cast<OpResult>(value);
  auto types = result.getOwner()->getAttrOfType<ArrayAttr>(kStoresAttr);
  return readPrecision(types && result.getResultNumber() < types.size() ? types[result.getResultNumber()]
                                                                        : Attribute());
}

void setStoredAs(Value value, Precision precision) {
  auto name = StringAttr::get(value.getContext(), toString(precision));
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    cast<func::FuncOp>(argument.getOwner()->getParentOp()).setArgAttr(argument.getArgNumber(), kStoresAttr, name);
    return;
  }
  auto result = cast<OpResult>(value);
  Operation *op = result.getOwner();
  SmallVector<Attribute> types(op->getNumResults(), StringAttr::get(value.getContext(), ""));
  if (auto known = op->getAttrOfType<ArrayAttr>(kStoresAttr)) {
    types.assign(known.begin(), known.end());
  }
  types[result.getResultNumber()] = name;
  op->setAttr(kStoresAttr, ArrayAttr::get(value.getContext(), types));
}

std::string calibratedModel(func::FuncOp function) {
  auto hash = function->getAttrOfType<StringAttr>(kCalibratedAttr);
  return hash ? hash.str() : "";
}

void setFactors(func::FuncOp function, const TensorFactors &factors) {
  Builder builder(function.getContext());
  SmallVector<NamedAttribute> list;
  for (const auto &entry : factors) {
    list.emplace_back(builder.getStringAttr(entry.getKey()),
                      builder.getArrayAttr({builder.getI64IntegerAttr(entry.getValue().axis),
                                            builder.getDenseF32ArrayAttr(entry.getValue().factors)}));
  }
  if (!list.empty()) {
    function->setAttr(kFactorsAttr, builder.getDictionaryAttr(list));
  }
}

TensorFactors factorsOf(func::FuncOp function) {
  TensorFactors factors;
  if (auto list = function->getAttrOfType<DictionaryAttr>(kFactorsAttr)) {
    for (NamedAttribute entry : list) {
      auto value = cast<ArrayAttr>(entry.getValue());
      factors[entry.getName()] = {cast<IntegerAttr>(value[0]).getInt(),
                                  cast<DenseF32ArrayAttr>(value[1]).asArrayRef().vec()};
    }
  }
  return factors;
}

void dropAssignment(func::FuncOp function) {
  for (StringRef name : {kPrecisionAttr, kFactorsAttr, kCalibratedAttr}) {
    function->removeAttr(name);
  }
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    function.removeArgAttr(i, kStoresAttr);
  }
  function->walk([](Operation *op) {
    for (StringRef name : {kPrecisionAttr, kReasonAttr, kRequestedAttr, kStoresAttr}) {
      op->removeAttr(name);
    }
  });
}

std::string displayName(Operation *op) {
  std::string name = top::getDisplayName(op->getLoc());
  return name.empty() && op->getNumResults() ? top::getTensorName(op->getResult(0)).str() : name;
}

} // namespace tessera::quant
