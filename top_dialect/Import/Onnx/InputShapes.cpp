//===- InputShapes.cpp - Parsing of --input_shapes ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/OnnxImport.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using llvm::StringRef;

namespace tessera::top {

namespace {

llvm::Error fail(StringRef text, const llvm::Twine &why) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 llvm::formatv("input shapes '{0}': {1}; write x=1x3x224x224,y=1x8 or "
                                               "[[1,3,224,224],[1,8]]",
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

llvm::Expected<InputShapes> parseJson(StringRef text) {
  auto json = llvm::json::parse(text);
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

} // namespace

llvm::Expected<InputShapes> InputShapes::parse(StringRef text) {
  text = text.trim();
  if (text.starts_with("[")) {
    return parseJson(text);
  }
  InputShapes shapes;
  llvm::SmallVector<StringRef> entries;
  text.split(entries, ',', -1, false);
  for (StringRef entry : entries) {
    auto [name, dimsText] = entry.trim().rsplit('=');
    if (name.empty() || dimsText.empty()) {
      return fail(text, llvm::formatv("'{0}' is not NAME=DIMxDIM", entry));
    }
    std::vector<int64_t> dims;
    llvm::SmallVector<StringRef> parts;
    dimsText.split(parts, 'x');
    for (StringRef part : parts) {
      int64_t dim;
      if (part.getAsInteger(10, dim)) {
        return fail(text, llvm::formatv("'{0}' of '{1}' is no number", part, name));
      }
      dims.push_back(dim);
    }
    if (!shapes.byName.emplace(name.str(), std::move(dims)).second) {
      return fail(text, llvm::formatv("'{0}' is given twice", name));
    }
  }
  return shapes;
}

} // namespace tessera::top
