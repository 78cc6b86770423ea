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

bool hasSameLayout(Type a, Type b) {
  auto blockOf = [](Type type) {
    BlockedAttr layout = getBlockedLayout(type);
    return layout ? layout.getBlock() : 0;
  };
  return blockOf(a) == blockOf(b);
}

RankedTensorType getRowMajorType(RankedTensorType type) {
  return tensorType(Shape(type).dims(), type.getElementType());
}

RankedTensorType getBlockedType(RankedTensorType type, int64_t block) {
  return tensorType(Shape(type).dims(), type.getElementType(), BlockedAttr::get(type.getContext(), block));
}

SmallVector<Dim> physicalDims(RankedTensorType type) {
  SmallVector<Dim> dims = Shape(type).dims();
  if (BlockedAttr layout = getBlockedLayout(type)) {
    dims[1] = ceilDiv(dims[1], layout.getBlock());
    dims.push_back(layout.getBlock());
  }
  return dims;
}

SmallVector<int64_t> physicalShape(RankedTensorType type) {
  return llvm::map_to_vector(physicalDims(type),
                             [](Dim dim) { return dim.isKnown() ? dim.value() : int64_t(ShapedType::kDynamic); });
}

int64_t elementBytes(Type elementType) {
  if (elementType.isInteger(1)) {
    return 1;
  }
  assert(elementType.isIntOrFloat() && "tensors hold integers and floats");
  return llvm::divideCeil(elementType.getIntOrFloatBitWidth(), 8);
}

Dim symbolicBytes(RankedTensorType type) {
  Dim bytes = elementBytes(type.getElementType());
  for (Dim dim : physicalDims(type)) {
    bytes *= dim;
  }
  return bytes;
}

int64_t physicalBytes(RankedTensorType type) {
  int64_t bytes = elementBytes(type.getElementType());
  for (Dim dim : physicalDims(type)) {
    assert(!dim.isUnknown() && "the size of a tensor of unknown shape is not known");
    if (llvm::MulOverflow(bytes, maxOf(dim), bytes)) {
      return std::numeric_limits<int64_t>::max();
    }
  }
  return bytes;
}

bool sameBytes(RankedTensorType a, RankedTensorType b) {
  Shape shapeA = a, shapeB = b;
  if (a.getElementType() != b.getElementType() || !sameSize(countElements(shapeA), countElements(shapeB))) {
    return false;
  }
  BlockedAttr layoutA = getBlockedLayout(a), layoutB = getBlockedLayout(b);
  if (a == b || (!layoutA && !layoutB)) {
    return true;
  }
  if (!layoutA) {
    return sameBytes(b, a);
  }
  if (layoutB) {
    return layoutA.getBlock() == layoutB.getBlock() &&
           sameSizes(shapeA.dropBack(shapeA.rank() - 2), shapeB.dropBack(shapeB.rank() - 2));
  }
  // Blocked and row-major bytes are equal if there is a single position and no padding lane: [N, C / b, 1.., b] is [N,
  // C].
  return isMultipleOf(shapeA[1], layoutA.getBlock()) &&
         llvm::all_of(shapeA.dropFront(2).dims(), [](Dim dim) { return dim.is(1); });
}

Type scalarType(Type elementType) {
  if (auto integer = dyn_cast<IntegerType>(elementType)) {
    return IntegerType::get(integer.getContext(), integer.getWidth());
  }
  return elementType;
}

} // namespace tessera::device
