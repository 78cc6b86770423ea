//===- Values.cpp - Helpers for values in the Top passes ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Transforms/Values.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/HostTensor.h"
#include "top_dialect/IR/SymbolicLists.h"
#include "top_dialect/IR/TopOps.h"
#include "llvm/ADT/APFloat.h"
#include <cstring>

namespace tessera::top {
using namespace mlir;

bool isReadable(Value v) { return hasConstantData(v); }

std::optional<double> getScalar(Value v) {
  if (!isReadable(v)) {
    return std::nullopt;
  }
  if (isa<FloatType>(typeOf(v).getElementType())) {
    return getSplatDouble(v);
  }
  if (typeOf(v).getNumElements() != 1) {
    return std::nullopt;
  }
  auto values = getConstantDoubles(v);
  return values ? std::optional(values->front()) : std::nullopt;
}

/// Rounds `values` to `type` and stores them in `bytes`.
static void encode(ArrayRef<double> values, FloatType type, MutableArrayRef<char> bytes) {
  if (type.isF32()) { // Nearly all weights are f32, so this loop is separate.
    for (auto [i, value] : llvm::enumerate(values)) {
      float single = static_cast<float>(value);
      std::memcpy(bytes.data() + i * sizeof(float), &single, sizeof(float));
    }
    return;
  }
  int64_t size = elementBytes(type);
  for (auto [i, value] : llvm::enumerate(values)) {
    llvm::APFloat number(value);
    bool lossy;
    number.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &lossy);
    uint64_t bits = number.bitcastToAPInt().getZExtValue();
    std::memcpy(bytes.data() + i * size, &bits, size);
  }
}

Value createFromDoubles(OpBuilder &builder, Location loc, RankedTensorType type, ArrayRef<double> values,
                        StringRef hint) {
  auto element = cast<FloatType>(type.getElementType());
  std::vector<char> bytes(values.size() * elementBytes(element));
  encode(values, element, bytes);
  return createConstant(builder, loc, type, std::move(bytes), hint);
}

StringRef constantHint(Value constant, StringRef otherwise) {
  auto weight = constant ? constant.getDefiningOp<WeightOp>() : WeightOp();
  return weight ? weight.getKey() : otherwise;
}

Value createPermuted(OpBuilder &builder, Value constant, ArrayRef<int64_t> perm) {
  RankedTensorType type = typeOf(constant);
  std::optional<TensorData> data = getConstantData(constant);
  int64_t rank = type.getRank(), bytes = elementBytes(type.getElementType());
  SmallVector<int64_t> sourceStrides(rank, 1), dims(rank), strides(rank);
  for (int64_t d = rank - 2; d >= 0; --d) {
    sourceStrides[d] = sourceStrides[d + 1] * type.getDimSize(d + 1);
  }
  for (int64_t d = 0; d < rank; ++d) {
    dims[d] = type.getDimSize(perm[d]);
    strides[d] = sourceStrides[perm[d]];
  }
  std::vector<char> result(data->bytes.size());
  SmallVector<int64_t> index(rank, 0);
  int64_t source = 0;
  for (int64_t i = 0, e = type.getNumElements(); i < e; ++i) {
    std::memcpy(result.data() + i * bytes, data->bytes.data() + source * bytes, bytes);
    for (int64_t d = rank - 1; d >= 0; --d) {
      source += strides[d];
      if (++index[d] < dims[d]) {
        break;
      }
      source -= strides[d] * dims[d];
      index[d] = 0;
    }
  }
  return createConstant(builder, constant.getLoc(), type.clone(dims), std::move(result),
                        constantHint(constant, "constant"));
}

Value createReshape(OpBuilder &builder, Location loc, Value v, Shape shape) {
  RankedTensorType type = tensorType(shape.dims(), typeOf(v).getElementType());
  if (type == v.getType()) {
    return v;
  }
  if (std::optional<TensorData> data = getConstantData(v)) {
    return createConstant(builder, v.getLoc(), type, data->bytes, constantHint(v, "constant"));
  }
  SizeList list = makeSizeList(shape.dims(), builder.getContext());
  auto reshape = ReshapeOp::create(builder, loc, type, v, Value(), list.numbers);
  setDims(reshape, kDimsAttr, list.dims);
  return reshape;
}

Value createSlice(OpBuilder &builder, Location loc, Value v, ArrayRef<Dim> starts, ArrayRef<Dim> sizes,
                  ArrayRef<int64_t> steps) {
  SizeList first = makeSizeList(starts, builder.getContext()), list = makeSizeList(sizes, builder.getContext());
  RankedTensorType type = tensorType(sizes, typeOf(v).getElementType());
  auto slice = SliceOp::create(builder, loc, type, v, first.numbers, list.numbers, steps);
  setDims(slice, kDimsAttr, list.dims);
  setDims(slice, kStartDimsAttr, first.dims);
  return slice;
}

Value createTranspose(OpBuilder &builder, Location loc, Value v, ArrayRef<int64_t> perm) {
  auto dims = llvm::map_to_vector(perm, [&](int64_t d) { return Shape(v)[d]; });
  return TransposeOp::create(builder, loc, tensorType(dims, typeOf(v).getElementType()), v, perm);
}

std::optional<SmallVector<double>> getPerChannel(Value v, int64_t rank, int64_t axis, int64_t channels) {
  if (!isConstant(v) || typeOf(v).getRank() > rank) {
    return std::nullopt;
  }
  ArrayRef<int64_t> dims = dimsOf(v);
  int64_t shift = rank - static_cast<int64_t>(dims.size());
  for (auto [d, dim] : llvm::enumerate(dims)) {
    bool isAxis = static_cast<int64_t>(d) + shift == axis;
    if (dim != 1 && !(isAxis && dim == channels)) {
      return std::nullopt;
    }
  }
  std::optional<SmallVector<double>> values = getConstantDoubles(v);
  if (values && values->size() == 1) {
    values->resize(channels, values->front());
  }
  return values;
}

} // namespace tessera::top
