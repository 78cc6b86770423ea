//===- Layout.cpp - Memory layout of tensors ------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/Layout.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::device {

BlockedAttr getBlockedLayout(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_if_present<BlockedAttr>(tensor.getEncoding()) : BlockedAttr();
}

RankedTensorType getRowMajorType(RankedTensorType type) {
  return RankedTensorType::get(type.getShape(), type.getElementType());
}

RankedTensorType getBlockedType(RankedTensorType type, int64_t block) {
  return RankedTensorType::get(type.getShape(), type.getElementType(), BlockedAttr::get(type.getContext(), block));
}

SmallVector<int64_t> physicalShape(RankedTensorType type) {
  SmallVector<int64_t> shape(type.getShape());
  if (BlockedAttr layout = getBlockedLayout(type)) {
    if (!ShapedType::isDynamic(shape[1])) {
      shape[1] = llvm::divideCeil(shape[1], layout.getBlock());
    }
    shape.push_back(layout.getBlock());
  }
  return shape;
}

int64_t elementBytes(Type elementType) {
  if (elementType.isInteger(1)) {
    return 1;
  }
  assert(elementType.isIntOrFloat() && "tensors hold integers and floats");
  return llvm::divideCeil(elementType.getIntOrFloatBitWidth(), 8);
}

int64_t physicalBytes(RankedTensorType type) {
  int64_t bytes = elementBytes(type.getElementType());
  for (int64_t dim : physicalShape(type)) {
    assert(!ShapedType::isDynamic(dim) && "the size of a dynamic tensor is not known");
    bytes *= dim;
  }
  return bytes;
}

/// Returns the dims other than 1, which determine the addresses.
static SmallVector<int64_t> significantDims(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> dims;
  llvm::copy_if(shape, std::back_inserter(dims), [](int64_t dim) { return dim != 1; });
  return dims;
}

bool sameBytes(RankedTensorType a, RankedTensorType b) {
  if (a.getElementType() != b.getElementType()) {
    return false;
  }
  if (a == b) {
    return true;
  }
  BlockedAttr layoutA = getBlockedLayout(a), layoutB = getBlockedLayout(b);
  if (!layoutA && !layoutB) {
    return a.getNumElements() == b.getNumElements();
  }
  if (!layoutA) {
    return sameBytes(b, a);
  }
  int64_t channels = a.getDimSize(1);
  if (layoutB) {
    return layoutA == layoutB && channels == b.getDimSize(1) && a.getDimSize(0) == b.getDimSize(0) &&
           a.getNumElements() == b.getNumElements();
  }
  // Blocked and row-major bytes are equal if there is a single position and no padding lane: [N, C / b, 1.., b] is [N,
  // C].
  return channels % layoutA.getBlock() == 0 && significantDims(a.getShape().drop_front(2)).empty() &&
         a.getNumElements() == b.getNumElements();
}

Type scalarType(Type elementType) {
  if (auto integer = dyn_cast<IntegerType>(elementType)) {
    return IntegerType::get(integer.getContext(), integer.getWidth());
  }
  return elementType;
}

} // namespace tessera::device
