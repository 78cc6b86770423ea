//===- Safetensors.cpp - The header of safetensors files ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/Safetensors.h"

#include "top_dialect/IR/HostTensor.h"
#include "top_dialect/IR/Json.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tessera::top;

namespace {
struct ElementType {
  const char *name;
  Type (*make)(MLIRContext *);
};
template <unsigned Width, IntegerType::SignednessSemantics Sign>
Type makeInt(MLIRContext *context) {
  return IntegerType::get(context, Width, Sign);
}
template <typename T>
Type makeFloat(MLIRContext *context) {
  return T::get(context);
}

constexpr auto kSignless = IntegerType::Signless;
constexpr auto kUnsigned = IntegerType::Unsigned;
// Wider elements first: tensors in this order, without gaps, are aligned to their elements.
constexpr ElementType kElementTypes[] = {
    {"F64", makeFloat<Float64Type>}, {"I64", makeInt<64, kSignless>},   {"U64", makeInt<64, kUnsigned>},
    {"F32", makeFloat<Float32Type>}, {"I32", makeInt<32, kSignless>},   {"U32", makeInt<32, kUnsigned>},
    {"F16", makeFloat<Float16Type>}, {"BF16", makeFloat<BFloat16Type>}, {"I16", makeInt<16, kSignless>},
    {"U16", makeInt<16, kUnsigned>}, {"I8", makeInt<8, kSignless>},     {"U8", makeInt<8, kUnsigned>},
    {"BOOL", makeInt<1, kSignless>},
};
} // namespace

size_t tessera::top::safetensorsRank(Type elementType) {
  if (auto integer = dyn_cast<IntegerType>(elementType); integer && integer.isSigned()) {
    elementType = IntegerType::get(integer.getContext(), integer.getWidth());
  }
  const auto *found = llvm::find_if(
      kElementTypes, [&](const ElementType &known) { return known.make(elementType.getContext()) == elementType; });
  return size_t(found - std::begin(kElementTypes));
}

StringRef tessera::top::safetensorsName(Type elementType) {
  const size_t rank = safetensorsRank(elementType);
  return rank < std::size(kElementTypes) ? kElementTypes[rank].name : "";
}

Type tessera::top::safetensorsType(MLIRContext *context, StringRef name) {
  const auto *found = llvm::find_if(kElementTypes, [&](const ElementType &known) { return name == known.name; });
  return found == std::end(kElementTypes) ? Type() : found->make(context);
}

std::string tessera::top::safetensorsEntry(StringRef name, StringRef type, ArrayRef<int64_t> shape, uint64_t begin,
                                           uint64_t end) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::json::Value(llvm::json::fixUTF8(name)) << ':';
  llvm::json::OStream json(os);
  json.object([&] {
    json.attribute("dtype", type);
    json.attributeArray("shape", [&] { llvm::for_each(shape, [&](int64_t dim) { json.value(dim); }); });
    json.attributeArray("data_offsets", [&] {
      json.value(begin);
      json.value(end);
    });
  });
  return text;
}

namespace {

constexpr uint64_t kMaxHeaderBytes = 100u << 20;

template <typename... Args>
llvm::Error fail(const char *format, Args &&...args) {
  return llvm::createStringError(llvm::formatv(format, std::forward<Args>(args)...).str());
}

llvm::Expected<SafetensorsTensor> parseTensor(MLIRContext *context, StringRef name, const llvm::json::Value &value,
                                              StringRef data) {
  const llvm::json::Object *object = value.getAsObject();
  auto dtype = object ? object->getString("dtype") : std::nullopt;
  const llvm::json::Array *shape = object ? object->getArray("shape") : nullptr;
  const llvm::json::Array *offsets = object ? object->getArray("data_offsets") : nullptr;
  if (!dtype || !shape || !offsets || offsets->size() != 2) {
    return fail("tensor '{0}' lacks dtype, shape or data_offsets", name);
  }
  SafetensorsTensor tensor{name.str(), safetensorsType(context, *dtype), {}, {}};
  if (!tensor.elementType) {
    return fail("tensor '{0}' has unknown dtype '{1}'", name, *dtype);
  }
  int64_t bytes = elementBytes(tensor.elementType);
  for (const llvm::json::Value &dim : *shape) {
    auto size = dim.getAsInteger();
    if (!size || *size < 0 || llvm::MulOverflow(bytes, *size, bytes)) {
      return fail("tensor '{0}' has a dim that is not a size", name);
    }
    tensor.shape.push_back(*size);
  }
  auto begin = (*offsets)[0].getAsUINT64();
  auto end = (*offsets)[1].getAsUINT64();
  if (!begin || !end || *begin > *end || *end > data.size() || *end - *begin != static_cast<uint64_t>(bytes)) {
    return fail("tensor '{0}' has offsets that do not match its size or the file", name);
  }
  tensor.bytes = {data.data() + *begin, data.data() + *end};
  return tensor;
}

} // namespace

llvm::Expected<std::vector<SafetensorsTensor>> tessera::top::parseSafetensors(MLIRContext *context, StringRef content) {
  constexpr size_t kLengthBytes = sizeof(uint64_t);
  if (content.size() < kLengthBytes) {
    return fail("it is not a safetensors file: it has only {0} bytes", content.size());
  }
  const uint64_t headerBytes = llvm::support::endian::read64le(content.data());
  if (headerBytes > kMaxHeaderBytes || headerBytes > content.size() - kLengthBytes) {
    return fail("it is not a safetensors file: its header would take {0} of the file's {1} bytes", headerBytes,
                content.size());
  }
  auto header = parseJson(content.substr(kLengthBytes, headerBytes));
  if (!header || !header->getAsObject()) {
    llvm::consumeError(header.takeError());
    return fail("it is not a safetensors file: its header is not a JSON object");
  }
  std::vector<SafetensorsTensor> tensors;
  for (auto &[name, value] : *header->getAsObject()) {
    if (name == "__metadata__") {
      continue;
    }
    auto tensor = parseTensor(context, name, value, content.drop_front(kLengthBytes + headerBytes));
    if (!tensor) {
      return tensor.takeError();
    }
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}
