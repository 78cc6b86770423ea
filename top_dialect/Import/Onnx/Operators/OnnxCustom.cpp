//===- OnnxCustom.cpp - Handler of custom operators -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopCustomOps.h"
#include "top_dialect/Import/Onnx/GraphImporter.h"
#include "top_dialect/Import/Onnx/Model/OnnxModel.h"
#include "top_dialect/Import/Onnx/Model/OnnxProto.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <cmath>
#include <map>

using namespace mlir;

namespace tessera::top::onnx_import {

namespace {

/// Returns a list in which |convert| has converted each element.
template <typename Elements, typename Convert>
llvm::json::Value listOf(const Elements &elements, Convert convert) {
  llvm::json::Array list;
  for (const auto &element : elements) {
    list.push_back(convert(element));
  }
  return list;
}

/// Returns the attribute as JSON, or null after an error.
llvm::json::Value toJson(NodeImporter &n, const onnx::AttributeProto &attribute) {
  auto number = [&](float value) -> llvm::json::Value {
    if (!std::isfinite(value)) {
      n.unsupported(llvm::formatv("attribute '{0}' is not a finite number, which JSON cannot express; pass it as an "
                                  "input",
                                  attribute.name()));
    }
    return double(value);
  };
  auto text = [&](const std::string &value) -> llvm::json::Value {
    if (!llvm::json::isUTF8(value)) {
      n.unsupported(llvm::formatv("attribute '{0}' is not UTF-8", attribute.name()));
    }
    return llvm::json::fixUTF8(value);
  };
  auto integer = [](int64_t value) -> llvm::json::Value { return value; };
  switch (attribute.type()) {
  case onnx::AttributeProto::FLOAT:
    return number(attribute.f());
  case onnx::AttributeProto::INT:
    return attribute.i();
  case onnx::AttributeProto::STRING:
    return text(attribute.s());
  case onnx::AttributeProto::FLOATS:
    return listOf(attribute.floats(), number);
  case onnx::AttributeProto::INTS:
    return listOf(attribute.ints(), integer);
  case onnx::AttributeProto::STRINGS:
    return listOf(attribute.strings(), text);
  default:
    n.unsupported(llvm::formatv("attribute '{0}' of a custom operator is not a number, a string or a list of them; "
                                "pass tensors as inputs",
                                attribute.name()));
    return nullptr;
  }
}

std::string readAttributes(NodeImporter &n) {
  llvm::json::Object object;
  for (const onnx::AttributeProto &attribute : n.node.attribute()) {
    object[llvm::json::fixUTF8(attribute.name())] = toJson(n, attribute);
  }
  return llvm::formatv("{0}", llvm::json::Value(std::move(object)));
}

/// Checks that the operator's shape rule accepts the sizes of |input|, which is input |i|.
void checkSizes(NodeImporter &n, unsigned i, Shape input) {
  if (!input.isDetermined()) {
    n.unsupported(llvm::formatv("input {0}, tensor '{1}', has a size about which nothing is known; a custom operator "
                                "needs numbers or the sizes of --dims: fix the sizes with --input_shapes, or give "
                                "--dims",
                                i, n.inputName(i)));
  } else if (!input.isKnown() &&
             !getCustomOperators()->acceptsOpenSizes(normalizeDomain(n.node.domain()), n.node.op_type())) {
    n.unsupported(llvm::formatv("input {0}, tensor '{1}', has a size that is known at run time only; the shape rule of "
                                "this custom operator takes numbers: change the rule and set "
                                "TESSERA_CUSTOM_OP_OPEN_SIZES in its flags (docs/custom-operators.md), fix the sizes "
                                "with --input_shapes, or give --dims single values",
                                i, n.inputName(i)));
  }
}

/// Returns the inputs, all of which must be present.
SmallVector<Value> readInputs(NodeImporter &n) {
  SmallVector<Value> inputs;
  for (unsigned i = 0; i < n.numInputs() && !n.failed(); ++i) {
    if (!n.hasInput(i)) {
      n.unsupported(llvm::formatv("input {0} is omitted; a custom operator needs all of its inputs", i));
      break;
    }
    inputs.push_back(n.input(i));
    checkSizes(n, i, inputs.back());
  }
  return inputs;
}

/// Checks that |counts|, the last output, has an element for each size that the run finds.
bool checkFoundSizes(NodeImporter &n, ArrayRef<FoundSize> found, RankedTensorType counts) {
  for (const FoundSize &size : found) {
    bool isVector = counts.getElementType().isInteger(64) && counts.getRank() == 1 && Shape(counts).isKnown();
    if (size.output == n.numOutputs() || !isVector || size.index < 0 || size.index >= Shape(counts)[0].value()) {
      n.fail(llvm::formatv("its shape rule gives output {0} a size that is found in element {1} of the last output, "
                           "which has to be an i64 vector with that element; the operator needs the flag "
                           "TESSERA_CUSTOM_OP_FINDS_SIZES",
                           size.output, size.index));
      return false;
    }
    if (!n.bindsSizes()) {
      n.unsupported(llvm::formatv("a run finds size {1} of its output '{0}': pass --dims auto, or its range, e.g. "
                                  "--dims {0}.{1}=0..100",
                                  n.node.output(int(size.output)), size.dim));
      return false;
    }
  }
  return true;
}

/// Cuts the outputs to the sizes that the run finds.
void cutToFound(NodeImporter &n, ArrayRef<FoundSize> found, MutableArrayRef<Value> results) {
  std::map<int64_t, Dim> bounds;
  for (auto [i, dim, index] : found) {
    Value &result = results[i];
    SmallVector<Dim> sizes = NodeImporter::sizes(result);
    auto known = bounds.find(index);
    if (known == bounds.end()) {
      Value element = n.slice(results.back(), {Dim(index)}, {Dim(1)}, {1});
      known = bounds.try_emplace(index, n.bindCount(element, i, dim, maxOf(sizes[dim]))).first;
    }
    // A largest size that is open is at most what the symbol allows.
    sizes[dim] = sizes[dim].isKnown() ? known->second : min(known->second, sizes[dim]);
    result = n.slice(result, SmallVector<Dim>(sizes.size(), Dim(0)), sizes, SmallVector<int64_t>(sizes.size(), 1));
  }
}

void importCustom(NodeImporter &n) {
  StringRef domain = normalizeDomain(n.node.domain());
  SmallVector<Value> inputs = readInputs(n);
  std::string attributes = readAttributes(n);
  if (n.failed()) {
    return;
  }
  SmallVector<RankedTensorType> inputTypes =
      llvm::map_to_vector(inputs, [](Value value) { return cast<RankedTensorType>(value.getType()); });
  CustomCall call{domain, n.node.op_type(), n.opset, attributes};
  unsigned count = n.numOutputs() + getCustomOperators()->findsSizes(domain, call.name);
  SmallVector<FoundSize> found;
  auto types = getCustomOperators()->infer(call, inputTypes, count, &found);
  if (!types) {
    return n.fail(types.takeError());
  }
  if (!checkFoundSizes(n, found, types->back())) {
    return;
  }
  SmallVector<Type> list(types->begin(), types->end());
  auto results = n.createMulti<CustomOp>(count, inputs, n.b.getStringAttr(domain), n.b.getStringAttr(call.name),
                                         n.b.getI64IntegerAttr(n.opset), n.b.getStringAttr(attributes),
                                         n.b.getTypeArrayAttr(list));
  cutToFound(n, found, results);
  for (unsigned i = 0; i < n.numOutputs(); ++i) {
    n.setOutput(i, results[i]);
  }
}

} // namespace

Handler findCustomHandler(StringRef domain, StringRef name) {
  const CustomOperators *operators = getCustomOperators();
  return operators && operators->contains(domain, name) ? importCustom : nullptr;
}

} // namespace tessera::top::onnx_import
