//===- InputShapes.cpp - Parsing of --input_shapes ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/Json.h"
#include "top_dialect/Import/Onnx/OnnxImport.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using llvm::StringRef;

namespace tessera::top {

namespace {

llvm::Error fail(StringRef text, const llvm::Twine &why) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 llvm::formatv("input shapes '{0}': {1}; write x=1x3x224x224,y=1x8,z=scalar or, in "
                                               "the order of the inputs, 1x3x224x224,1x8 or [[1,3,224,224],[1,8]]",
                                               text, why.str()));
}

llvm::Expected<std::vector<int64_t>> parseList(StringRef text, const llvm::json::Array &array) {
  std::vector<int64_t> dims;
  for (const llvm::json::Value &value : array) {
    auto dim = value.getAsInteger();
    if (!dim) {
      return fail(text, "dims are integers");
    }
    dims.push_back(*dim);
  }
  return dims;
}

llvm::Expected<InputShapes> parseLists(StringRef text) {
  auto json = tessera::top::parseJson(text);
  if (!json) {
    return fail(text, llvm::toString(json.takeError()));
  }
  const llvm::json::Array *outer = json->getAsArray();
  InputShapes shapes;
  bool nested = !outer->empty() && outer->front().getAsArray();
  if (!nested) {
    auto dims = parseList(text, *outer);
    if (!dims) {
      return dims.takeError();
    }
    shapes.byPosition.push_back(std::move(*dims));
    return shapes;
  }
  for (const llvm::json::Value &value : *outer) {
    const llvm::json::Array *array = value.getAsArray();
    if (!array) {
      return fail(text, "lists and numbers are mixed");
    }
    auto dims = parseList(text, *array);
    if (!dims) {
      return dims.takeError();
    }
    shapes.byPosition.push_back(std::move(*dims));
  }
  return shapes;
}

/// Parses "1x3x224x224". "scalar", "[]" and "" mean the shape without dims.
llvm::Expected<std::vector<int64_t>> parseDims(StringRef text, StringRef name, StringRef dimsText) {
  std::vector<int64_t> dims;
  if (dimsText.empty() || dimsText == "scalar" || dimsText == "[]") {
    return dims;
  }
  llvm::SmallVector<StringRef> parts;
  dimsText.split(parts, 'x');
  for (StringRef part : parts) {
    int64_t dim;
    if (part.getAsInteger(10, dim)) {
      return fail(text, llvm::formatv("'{0}' of '{1}' is not a number", part, name));
    }
    dims.push_back(dim);
  }
  return dims;
}

} // namespace

llvm::Expected<InputShapes> InputShapes::parse(StringRef text) {
  text = text.trim();
  if (text.starts_with("[")) {
    return parseLists(text);
  }
  InputShapes shapes;
  llvm::SmallVector<StringRef> entries;
  text.split(entries, ',', -1, false);
  for (StringRef entry : entries) {
    entry = entry.trim();
    bool named = entry.contains('=');
    auto [name, dimsText] = named ? entry.rsplit('=') : std::pair(StringRef(), entry);
    if (named && name.empty()) {
      return fail(text, llvm::formatv("'{0}' is not NAME=DIMxDIM", entry));
    }
    auto dims = parseDims(text, named ? name : "an input", dimsText);
    if (!dims) {
      return dims.takeError();
    }
    if (!named) {
      shapes.byPosition.push_back(std::move(*dims));
    } else if (!shapes.byName.emplace(name.str(), std::move(*dims)).second) {
      return fail(text, llvm::formatv("'{0}' is given twice", name));
    }
  }
  if (!shapes.byName.empty() && !shapes.byPosition.empty()) {
    return fail(text, "shapes with and without a name are mixed");
  }
  return shapes;
}

} // namespace tessera::top
