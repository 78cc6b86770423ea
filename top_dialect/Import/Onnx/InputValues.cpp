//===- InputValues.cpp - Parsing of --input_values ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/HostTensor.h"
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/Import/Onnx/Model/ImportError.h"
#include "top_dialect/Import/Onnx/OnnxImport.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/APSInt.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::StringRef;

namespace tessera::top {

using onnx_import::fail;

namespace {

/// Values are meant for switches and small tables. Large data belongs in the file.
constexpr size_t kMaxElements = 1 << 16;

/// Splits at the commas that are outside brackets.
llvm::SmallVector<StringRef> splitEntries(StringRef text) {
  llvm::SmallVector<StringRef> entries;
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '[' ? 1 : text[i] == ']' ? -1 : 0;
    if (text[i] == ',' && depth == 0) {
      entries.push_back(text.slice(start, i));
      start = i + 1;
    }
  }
  entries.push_back(text.drop_front(start));
  return entries;
}

/// Collects the elements of nested lists in order. All lists at one level must have the same length.
llvm::Error flatten(const llvm::json::Value &value, size_t depth, llvm::SmallVectorImpl<int64_t> &shape,
                    std::vector<llvm::json::Value> &elements) {
  const llvm::json::Array *array = value.getAsArray();
  if (!array) {
    if (depth < shape.size()) {
      return fail("numbers and lists are mixed");
    }
    if (elements.size() >= kMaxElements) {
      return fail(llvm::formatv("it has more than {0} elements", kMaxElements));
    }
    elements.push_back(value);
    return llvm::Error::success();
  }
  if (depth == shape.size()) {
    if (!elements.empty() || depth >= 16) {
      return fail("its lists are nested unevenly or too deep");
    }
    shape.push_back(array->size());
  }
  if (shape[depth] != static_cast<int64_t>(array->size())) {
    return fail(llvm::formatv("its lists have {0} and {1} entries", shape[depth], array->size()));
  }
  for (const llvm::json::Value &entry : *array) {
    if (llvm::Error error = flatten(entry, depth + 1, shape, elements)) {
      return error;
    }
  }
  return llvm::Error::success();
}

void append(std::vector<char> &bytes, uint64_t bits, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    bytes.push_back(static_cast<char>(bits >> (8 * i)));
  }
}

/// Appends one element in the memory format of |type|. Returns false if the type cannot represent it.
bool encodeElement(const llvm::json::Value &value, mlir::Type type, std::vector<char> &bytes) {
  int64_t size = elementBytes(type);
  if (auto isTrue = value.getAsBoolean(); isTrue && type.isInteger(1)) {
    append(bytes, *isTrue, size);
    return true;
  }
  if (auto floats = llvm::dyn_cast<mlir::FloatType>(type)) {
    auto number = value.getAsNumber();
    if (!number) {
      return false;
    }
    llvm::APFloat narrow(*number);
    bool losesInfo = false;
    llvm::APFloat::opStatus status =
        narrow.convert(floats.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    append(bytes, narrow.bitcastToAPInt().getZExtValue(), size);
    return !(status & llvm::APFloat::opOverflow);
  }
  auto integers = llvm::dyn_cast<mlir::IntegerType>(type);
  if (!integers) {
    return false;
  }
  unsigned width = integers.getWidth();
  if (integers.isUnsigned() || width == 1) {
    auto number = value.getAsUINT64();
    append(bytes, number.value_or(0), size);
    return number && (width >= 64 || *number < uint64_t(1) << width);
  }
  auto number = value.getAsInteger();
  append(bytes, static_cast<uint64_t>(number.value_or(0)), size);
  return number && llvm::isIntN(width, *number);
}

std::string nameOf(mlir::Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

} // namespace

llvm::Error InputValues::parse(StringRef text) {
  for (StringRef entry : splitEntries(text)) {
    auto [name, valueText] = entry.trim().rsplit('=');
    if (name.empty() || valueText.empty()) {
      return fail(llvm::formatv("input values '{0}': '{1}' is not NAME=VALUE; write sr=16000 or x=[1,2,3],flag=true",
                                text, entry));
    }
    std::string json = valueText == "True" ? "true" : valueText == "False" ? "false" : valueText.str();
    auto parsed = llvm::json::parse(json);
    if (!parsed) {
      return fail(
          llvm::formatv("input values '{0}': '{1}' of '{2}' is not a number, true, false or a list of those: {3}", text,
                        valueText, name, llvm::toString(parsed.takeError())));
    }
    InputValue value{valueText.str(), {}, {}};
    if (llvm::Error error = flatten(*parsed, 0, value.shape, value.elements)) {
      return fail(llvm::formatv("input values '{0}': '{1}': {2}", text, name, llvm::toString(std::move(error))));
    }
    if (!byName.emplace(name.str(), std::move(value)).second) {
      return fail(llvm::formatv("input values '{0}': '{1}' is given twice", text, name));
    }
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<char>> InputValue::encode(StringRef name, llvm::SmallVectorImpl<int64_t> &inputShape,
                                                     mlir::Type type) const {
  bool isOne = elements.size() == 1 && shape.empty() &&
               llvm::all_of(inputShape, [](int64_t dim) { return dim == 1 || mlir::ShapedType::isDynamic(dim); });
  if (!isOne && !detail::shapesAgree(Shape(shape).dims(), Shape(inputShape).dims())) {
    return fail(llvm::formatv("the value given for input '{0}' has the shape {1}; the model expects {2}", name,
                              detail::formatShape(shape), detail::formatShape(inputShape)));
  }
  std::vector<char> bytes;
  for (const llvm::json::Value &element : elements) {
    if (!encodeElement(element, type, bytes)) {
      return fail(
          llvm::formatv("input '{0}' has type {1}, which cannot represent the value {2}", name, nameOf(type), element));
    }
  }
  if (isOne) {
    std::fill(inputShape.begin(), inputShape.end(), 1);
  } else {
    inputShape.assign(shape.begin(), shape.end());
  }
  return bytes;
}

} // namespace tessera::top
