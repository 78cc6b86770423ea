//===- OnnxRandom.cpp - Handlers of operators that draw random numbers ----===//
// SPDX-License-Identifier: Apache-2.0
//
// Their results become inputs of the network: ONNX does not define the generator, not even for a given seed, and a
// network that draws its own numbers could not be compared with anything.
#include "top_dialect/Import/Onnx/GraphImporter.h"
#include "top_dialect/Import/Onnx/Model/OnnxModel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

std::string describeDistribution(NodeImporter &n, bool isNormal) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (isNormal) {
    stream << llvm::format("a normal distribution with mean %g and standard deviation %g", n.floatAttr("mean", 0.0),
                           n.floatAttr("scale", 1.0));
  } else {
    stream << llvm::format("a uniform distribution from %g to %g", n.floatAttr("low", 0.0), n.floatAttr("high", 1.0));
  }
  return text;
}

/// Returns the sizes of the input for random numbers of |shape|: those of the network's inputs, and the largest ones of
/// sizes that a run computes, which its caller does not know.
llvm::SmallVector<Dim> inputSizes(NodeImporter &n, llvm::ArrayRef<Dim> shape) {
  llvm::SetVector<SizeSymbolAttr> ofInputs;
  for (Value input : n.b.getInsertionBlock()->getArguments()) {
    collectSymbols(input, ofInputs);
  }
  return llvm::map_to_vector(shape, [&](Dim size) {
    llvm::SetVector<SizeSymbolAttr> own;
    collectSymbols(size, own);
    bool isGiven = llvm::all_of(own, [&](SizeSymbolAttr symbol) { return ofInputs.contains(symbol); });
    return isGiven ? size : Dim(maxOf(size));
  });
}

/// Gives an input of the network other sizes.
void setSizes(mlir::BlockArgument input, llvm::ArrayRef<Dim> sizes) {
  mlir::Block *body = input.getOwner();
  auto function = llvm::cast<mlir::func::FuncOp>(body->getParentOp());
  input.setType(tensorType(sizes, NodeImporter::elementType(input)));
  function.setFunctionType(
      mlir::FunctionType::get(function.getContext(), body->getArgumentTypes(), function.getResultTypes()));
}

void makeInput(NodeImporter &n, llvm::ArrayRef<Dim> shape, mlir::Type byDefault, bool isNormal) {
  mlir::Type element = n.hasAttr("dtype") ? n.typeOf(n.requiredInt("dtype")) : byDefault;
  if (!n.failed() && !llvm::isa<mlir::FloatType>(element)) {
    n.fail("its type is not one of floating-point numbers");
  }
  if (llvm::any_of(shape, [](Dim size) { return size.isUnknown(); })) {
    n.unsupported("needs static dims: fix them with --input_shapes");
  }
  if (!n.graph.isOutermost()) {
    n.unsupported("random numbers inside a branch, a loop or a function cannot become an input of the network: replace "
                  "the node in the model");
  }
  if (n.failed()) {
    return;
  }
  llvm::StringRef name = n.node.output(0);
  ImportState &state = *n.graph.model.state;
  llvm::SmallVector<Dim> sizes = inputSizes(n, shape);
  auto value = state.addInput(name, llvm::map_to_vector(shape, maxOf), element);
  if (!value) {
    n.fail(value.takeError());
    return;
  }
  if (llvm::isa<mlir::BlockArgument>(*value)) {
    state.warnOnce(llvm::formatv("{0} draws random numbers{1}: its result '{2}' becomes an input of the network; give "
                                 "it numbers of {3}, or fix it with --input_values {2}=VALUE",
                                 describeNode(n.node),
                                 n.hasAttr("seed") ? ", and ONNX does not define which ones for a seed" : "", name,
                                 describeDistribution(n, isNormal)));
  }
  if (auto input = llvm::dyn_cast<mlir::BlockArgument>(*value)) {
    setSizes(input, sizes);
  }
  // The network reads the front of the largest size.
  bool isWhole = NodeImporter::hasSizes(*value, shape);
  n.setOutput(0, isWhole ? *value
                         : n.slice(*value, llvm::SmallVector<Dim>(shape.size(), Dim(0)), shape, Ints(shape.size(), 1)));
}

template <bool isNormal>
void random(NodeImporter &n) {
  Ints shape = n.intsAttr("shape");
  makeInput(n, Shape(shape).dims(), n.b.getF32Type(), isNormal);
}

template <bool isNormal>
void randomLike(NodeImporter &n) {
  Value x = n.input(0);
  makeInput(n, NodeImporter::sizes(x), NodeImporter::elementType(x), isNormal);
}

constexpr HandlerEntry kHandlers[] = {
    {"", "RandomNormal", random<true>},
    {"", "RandomNormalLike", randomLike<true>},
    {"", "RandomUniform", random<false>},
    {"", "RandomUniformLike", randomLike<false>},
};

} // namespace

llvm::ArrayRef<HandlerEntry> randomHandlers() { return kHandlers; }

} // namespace tessera::top::onnx_import
