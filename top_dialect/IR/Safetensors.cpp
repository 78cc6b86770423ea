//===- Safetensors.cpp - The header of safetensors files ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/Safetensors.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
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
