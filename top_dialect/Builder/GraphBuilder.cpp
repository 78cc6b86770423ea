//===- GraphBuilder.cpp - Builds a Top module op by op --------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Builder/GraphBuilder.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/State.h"
#include "top_dialect/IR/SymbolicLists.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/TopInterfaces.h"
#include "top_dialect/IR/WeightLifetime.h"
#include "top_dialect/IR/WeightStore.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::top;

/// Runs |body|; returns the first diagnostic if it fails.
static std::optional<std::string> findFailure(MLIRContext *context, llvm::function_ref<LogicalResult()> body) {
  std::string message;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    if (message.empty()) {
      message = diagnostic.str();
    }
    return success();
  });
  return failed(body()) ? std::optional(message) : std::nullopt;
}

GraphBuilder::GraphBuilder(MLIRContext *context, StringRef modelName)
    : b(context), loc(b.getUnknownLoc()), module(ModuleOp::create(loc)) {
  (*module)->setAttr(TopDialect::kModelNameAttr, b.getStringAttr(modelName));
  b.setInsertionPointToEnd(module->getBody());
  function = func::FuncOp::create(b, loc, "main", b.getFunctionType({}, {}));
  b.setInsertionPointToStart(function.addEntryBlock());
}

void GraphBuilder::setName(const Twine &text) {
  name = text.str();
  loc = NameLoc::get(b.getStringAttr(name));
}

void GraphBuilder::fail(llvm::Error cause) {
  llvm::handleAllErrors(std::move(cause), [&](std::unique_ptr<llvm::ErrorInfoBase> info) {
    error = error ? std::move(error) : std::move(info);
  });
}

void GraphBuilder::fail(const Twine &message) { fail(llvm::createStringError(message)); }

RankedTensorType GraphBuilder::unknownType() { return RankedTensorType::get({}, b.getF32Type()); }

Value GraphBuilder::placeholder() { return createScalar(b, loc, b.getF32Type(), 0); }

Value GraphBuilder::finishOp(Operation *op) {
  SmallVector<RankedTensorType> types;
  auto failure = findFailure(b.getContext(), [&] { return cast<ShapeInterface>(op).inferShapes(types); });
  if (failure) {
    fail("'" + name + "': " + *failure);
    return op->getResult(0);
  }
  op->getResult(0).setType(types.front());
  return op->getResult(0);
}

//--- inputs and outputs ---

Value GraphBuilder::addInput(StringRef inputName, Type element, ArrayRef<Dim> sizes) {
  const unsigned index = function.getNumArguments();
  auto attributes = b.getDictionaryAttr(b.getNamedAttr(TopDialect::kNameAttr, b.getStringAttr(inputName)));
  if (failed(function.insertArgument(index, tensorType(sizes, element), attributes,
                                     NameLoc::get(b.getStringAttr(inputName))))) {
    fail("input '" + inputName + "' cannot be added");
    return placeholder();
  }
  return function.getArgument(index);
}

Value GraphBuilder::addState(StringRef stateName, StringRef after, Type element, ArrayRef<Dim> sizes) {
  states.emplace_back(stateName.str(), after.str());
  return addInput(stateName, element, sizes);
}

void GraphBuilder::addOutput(StringRef outputName, Value value) {
  if (Operation *op = value.getDefiningOp(); op && !hasFailed()) {
    setTensorNames(op, {outputName});
  }
  outputNames.push_back(outputName.str());
  outputs.push_back(value);
}

//--- ops ---

Value GraphBuilder::constant(RankedTensorType type, std::vector<char> bytes, StringRef hint) {
  return createConstant(b, loc, type, std::move(bytes), hint);
}

Value GraphBuilder::constant(RankedTensorType type, ArrayRef<char> bytes, std::shared_ptr<const void> owner,
                             bool isMapped, StringRef hint) {
  if (int64_t(bytes.size()) <= kMaxInlineBytes) {
    return createConstant(b, loc, type, bytes, hint);
  }
  auto &store = b.getContext()->getOrLoadDialect<TopDialect>()->getWeightStore();
  std::string key = store.add(hint, type.getElementType(), Shape(type).values(), bytes, std::move(owner), isMapped);
  return WeightOp::create(b, loc, type, b.getStringAttr(key));
}

Value GraphBuilder::lazyConstant(RankedTensorType type, std::function<std::vector<char>()> make, StringRef hint) {
  return createLazyConstant(b, loc, type, std::move(make), hint);
}

Value GraphBuilder::constant(ArrayRef<int64_t> shape, ArrayRef<float> values, StringRef hint) {
  ArrayRef<char> bytes(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float));
  return createConstant(b, loc, RankedTensorType::get(shape, b.getF32Type()), bytes, hint);
}

Value GraphBuilder::scalar(Type element, double value) { return createScalar(b, loc, element, value); }

Value GraphBuilder::reshape(Value x, ArrayRef<Dim> sizes) {
  if (hasFailed()) {
    return placeholder();
  }
  SizeList list = makeSizeList(sizes, b.getContext());
  auto op = ReshapeOp::create(b, loc, unknownType(), x, Value(), list.numbers);
  setDims(op, kDimsAttr, list.dims);
  return finishOp(op);
}

Value GraphBuilder::transpose(Value x, ArrayRef<int64_t> permutation) { return create<TransposeOp>(x, permutation); }

Value GraphBuilder::slice(Value x, ArrayRef<Dim> starts, ArrayRef<Dim> sizes) {
  if (hasFailed()) {
    return placeholder();
  }
  SizeList first = makeSizeList(starts, b.getContext()), list = makeSizeList(sizes, b.getContext());
  SmallVector<int64_t> steps(sizes.size(), 1);
  auto op = SliceOp::create(b, loc, unknownType(), x, first.numbers, list.numbers, steps);
  setDims(op, kDimsAttr, list.dims);
  setDims(op, kStartDimsAttr, first.dims);
  return finishOp(op);
}

Value GraphBuilder::slice(Value x, int64_t axis, Dim start, Dim size) {
  if (hasFailed()) {
    return placeholder();
  }
  SmallVector<Dim> sizes = Shape(x).dims(), starts(sizes.size(), 0);
  starts[axis] = start, sizes[axis] = size;
  return slice(x, starts, sizes);
}

Value GraphBuilder::concat(Value a, Value c, int64_t axis) { return create<ConcatOp>(ValueRange{a, c}, axis); }

Value GraphBuilder::linear(Value x, Value weight, Value bias) {
  return create<MatMulOp>(x, weight, bias, /*transA=*/false, /*transB=*/true, /*relu=*/false, llvm::APFloat(-1.0));
}

llvm::Expected<OwningOpRef<ModuleOp>> GraphBuilder::finish() {
  if (error) {
    return llvm::Error(std::move(error));
  }
  auto end = func::ReturnOp::create(b, b.getUnknownLoc(), outputs);
  function.setType(b.getFunctionType(ValueRange(function.getArguments()).getTypes(), end.getOperandTypes()));
  for (auto [i, outputName] : llvm::enumerate(outputNames)) {
    function.setResultAttr(i, TopDialect::kNameAttr, b.getStringAttr(outputName));
  }
  for (const auto &[before, after] : states) {
    unsigned argument = 0;
    while (function.getArgAttrOfType<StringAttr>(argument, TopDialect::kNameAttr) != before) {
      ++argument;
    }
    auto result = unsigned(llvm::find(outputNames, after) - outputNames.begin());
    top::addState(function, {before, argument, result});
  }
  if (llvm::Error wrong = verifyStates(function)) {
    return std::move(wrong);
  }
  if (auto failure = findFailure(b.getContext(), [&] { return mlir::verify(*module); })) {
    return llvm::createStringError(*failure);
  }
  return std::move(module);
}
