//===- Constants.cpp - Reading and creating constant tensors ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/Constants.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "top_dialect/IR/HostTensor.h"
#include "top_dialect/IR/TopConstOps.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/WeightStore.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace tessera::top;

int64_t tessera::top::byteSize(RankedTensorType type) {
  int64_t bytes = elementBytes(type.getElementType());
  if (llvm::is_contained(type.getShape(), 0)) {
    return 0;
  }
  for (int64_t dim : type.getShape()) {
    if (ShapedType::isDynamic(dim) || llvm::MulOverflow(bytes, dim, bytes)) {
      return -1;
    }
  }
  return bytes;
}

// Expands packed data: DenseElementsAttr stores i1 as bits and splats as one element, TensorData needs every element.
static TensorData unpack(DenseElementsAttr attr, RankedTensorType type) {
  auto owner = std::make_shared<std::vector<char>>();
  if (type.getElementType().isInteger(1)) {
    for (bool bit : attr.getValues<bool>()) {
      owner->push_back(bit ? 1 : 0);
    }
  } else {
    ArrayRef<char> element = attr.getRawData();
    owner->reserve(byteSize(type));
    for (int64_t i = 0, e = type.getNumElements(); i < e; ++i) {
      owner->insert(owner->end(), element.begin(), element.end());
    }
  }
  ArrayRef<char> bytes(owner->data(), owner->size());
  return {type, bytes, std::move(owner)};
}

static WeightStore &storeOf(Operation *op) {
  return op->getContext()->getLoadedDialect<TopDialect>()->getWeightStore();
}

std::optional<TensorData> tessera::top::getConstantData(Value value) {
  Operation *op = value ? value.getDefiningOp() : nullptr;
  if (auto constant = dyn_cast_or_null<ConstantOp>(op)) {
    auto type = cast<RankedTensorType>(constant.getType());
    auto attr = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!attr || attr.getType() != type) {
      return std::nullopt;
    }
    if (type.getElementType().isInteger(1) || attr.isSplat()) {
      return unpack(attr, type);
    }
    return TensorData{type, attr.getRawData(), nullptr};
  }
  if (auto weight = dyn_cast_or_null<WeightOp>(op)) {
    auto type = cast<RankedTensorType>(weight.getType());
    auto view = storeOf(op).lookup(weight.getKey());
    if (!view || static_cast<int64_t>(view->bytes.size()) != byteSize(type)) {
      return std::nullopt;
    }
    return TensorData{type, view->bytes, nullptr};
  }
  return std::nullopt;
}

bool tessera::top::hasConstantData(Value value) {
  auto weight = value ? value.getDefiningOp<WeightOp>() : WeightOp();
  return weight ? storeOf(weight).sizeOf(weight.getKey()) == byteSize(cast<RankedTensorType>(weight.getType()))
                : getConstantData(value).has_value();
}

bool tessera::top::isConstant(Value value) {
  return llvm::isa_and_nonnull<ConstantOp, WeightOp>(value ? value.getDefiningOp() : nullptr);
}

template <typename T>
static void appendAs(ArrayRef<char> bytes, SmallVectorImpl<int64_t> &out) {
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T element;
    std::memcpy(&element, bytes.data() + i, sizeof(T));
    out.push_back(static_cast<int64_t>(element));
  }
}

static bool appendInts(const TensorData &data, SmallVectorImpl<int64_t> &out) {
  auto type = dyn_cast<IntegerType>(data.type.getElementType());
  if (!type) {
    return false;
  }
  bool isUnsigned = type.isUnsigned() || type.getWidth() == 1;
  switch (elementBytes(type)) {
  case 1:
    isUnsigned ? appendAs<uint8_t>(data.bytes, out) : appendAs<int8_t>(data.bytes, out);
    return true;
  case 2:
    isUnsigned ? appendAs<uint16_t>(data.bytes, out) : appendAs<int16_t>(data.bytes, out);
    return true;
  case 4:
    isUnsigned ? appendAs<uint32_t>(data.bytes, out) : appendAs<int32_t>(data.bytes, out);
    return true;
  case 8:
    appendAs<int64_t>(data.bytes, out);
    return true;
  default:
    return false;
  }
}

std::optional<SmallVector<int64_t>> tessera::top::getConstantInts(Value value) {
  SmallVector<int64_t> ints;
  auto data = getConstantData(value);
  if (!data || !appendInts(*data, ints)) {
    return std::nullopt;
  }
  return ints;
}

std::optional<SmallVector<double>> tessera::top::getConstantDoubles(Value value) {
  auto data = getConstantData(value);
  if (!data) {
    return std::nullopt;
  }
  SmallVector<double> doubles;
  if (data->type.getElementType().isF32()) {
    llvm::append_range(doubles, data->data<float>());
    return doubles;
  }
  if (auto type = dyn_cast<FloatType>(data->type.getElementType())) {
    int64_t size = elementBytes(type);
    for (size_t i = 0; i + size <= data->bytes.size(); i += size) {
      uint64_t bits = 0;
      std::memcpy(&bits, data->bytes.data() + i, size);
      APFloat number(type.getFloatSemantics(), APInt(type.getWidth(), bits));
      bool losesInfo = false;
      number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
      doubles.push_back(number.convertToDouble());
    }
    return doubles;
  }
  SmallVector<int64_t> ints;
  if (!appendInts(*data, ints)) {
    return std::nullopt;
  }
  doubles.assign(ints.begin(), ints.end());
  return doubles;
}

std::optional<double> tessera::top::getSplatDouble(Value value) {
  auto weight = value ? value.getDefiningOp<WeightOp>() : WeightOp();
  if (weight && storeOf(weight).isUncomputed(weight.getKey())) {
    return std::nullopt;
  }
  auto data = getConstantData(value);
  if (!data || data->bytes.empty() || !isa<FloatType>(data->type.getElementType())) {
    return std::nullopt;
  }
  size_t size = elementBytes(data->type.getElementType());
  for (size_t i = size; i < data->bytes.size(); i += size) {
    if (std::memcmp(data->bytes.data(), data->bytes.data() + i, size) != 0) {
      return std::nullopt;
    }
  }
  auto type = cast<FloatType>(data->type.getElementType());
  uint64_t bits = 0;
  std::memcpy(&bits, data->bytes.data(), size);
  APFloat number(type.getFloatSemantics(), APInt(type.getWidth(), bits));
  bool losesInfo = false;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToDouble();
}

static Value createInline(OpBuilder &builder, Location loc, RankedTensorType type, ArrayRef<char> bytes) {
  DenseElementsAttr attr;
  if (type.getElementType().isInteger(1)) {
    SmallVector<bool> bits;
    for (char byte : bytes) {
      bits.push_back(byte != 0);
    }
    attr = DenseElementsAttr::get(type, bits);
  } else {
    attr = DenseElementsAttr::getFromRawBuffer(type, bytes);
  }
  return ConstantOp::create(builder, loc, type, attr);
}

static Value createWeight(OpBuilder &builder, Location loc, RankedTensorType type, StringRef key) {
  return WeightOp::create(builder, loc, type, builder.getStringAttr(key));
}

static WeightStore &storeOf(OpBuilder &builder) {
  return builder.getContext()->getOrLoadDialect<TopDialect>()->getWeightStore();
}

Value tessera::top::createConstant(OpBuilder &builder, Location loc, RankedTensorType type, ArrayRef<char> bytes,
                                   StringRef hint) {
  if (static_cast<int64_t>(bytes.size()) <= kMaxInlineBytes) {
    return createInline(builder, loc, type, bytes);
  }
  return createConstant(builder, loc, type, std::vector<char>(bytes.begin(), bytes.end()), hint);
}

Value tessera::top::createConstant(OpBuilder &builder, Location loc, RankedTensorType type, std::vector<char> bytes,
                                   StringRef hint) {
  if (static_cast<int64_t>(bytes.size()) <= kMaxInlineBytes) {
    return createInline(builder, loc, type, bytes);
  }
  std::string key = storeOf(builder).add(hint, type.getElementType(), type.getShape(), std::move(bytes));
  return createWeight(builder, loc, type, key);
}

Value tessera::top::createIntVector(OpBuilder &builder, Location loc, ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, builder.getI64Type());
  return createConstant(builder, loc, type,
                        ArrayRef<char>(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(int64_t)),
                        "ints");
}

Value tessera::top::createScalar(OpBuilder &builder, Location loc, Type elementType, double value) {
  auto type = RankedTensorType::get({}, elementType);
  Attribute element;
  if (isa<FloatType>(elementType)) {
    element = FloatAttr::get(elementType, value);
  } else {
    constexpr double kLargest = 9223372036854774784.0; // the largest double below 2^63
    auto integer = static_cast<int64_t>(std::isnan(value) ? 0.0 : std::clamp(value, -kLargest, kLargest));
    element = IntegerAttr::get(elementType, APInt(elementType.getIntOrFloatBitWidth(), static_cast<uint64_t>(integer),
                                                  /*isSigned=*/false, /*implicitTrunc=*/true));
  }
  return ConstantOp::create(builder, loc, type, DenseElementsAttr::get(type, element));
}
