//===- HostTensor.cpp - A tensor in host memory ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/HostTensor.h"

#include "mlir/Dialect/Quant/IR/QuantTypes.h"

using namespace mlir;
using namespace tessera::top;

int64_t tessera::top::elementBytes(Type type) {
  if (auto quantized = dyn_cast<quant::QuantizedType>(type)) {
    type = quantized.getStorageType();
  }
  return type.isIntOrFloat() ? (type.getIntOrFloatBitWidth() + 7) / 8 : 0;
}

static int64_t product(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t dim : shape) {
    assert(dim >= 0 && "a host tensor has static dims");
    count *= dim;
  }
  return count;
}

HostTensor::HostTensor(Type elementType, ArrayRef<int64_t> shape) : elementType(elementType) { resize(shape); }

HostTensor::HostTensor(RankedTensorType type, ArrayRef<char> bytes)
    : elementType(type.getElementType()), shape(type.getShape()), bytes(bytes.begin(), bytes.end()) {
  assert(static_cast<int64_t>(bytes.size()) == getNumElements() * elementBytes(elementType));
}

HostTensor HostTensor::borrow(RankedTensorType type, ArrayRef<char> bytes, std::shared_ptr<const void> owner) {
  // Tensors of a mapped file may be unaligned.
  if (reinterpret_cast<uintptr_t>(bytes.data()) % std::max<int64_t>(elementBytes(type.getElementType()), 1) != 0) {
    return HostTensor(type, bytes);
  }
  HostTensor tensor;
  tensor.elementType = type.getElementType();
  tensor.shape.assign(type.getShape().begin(), type.getShape().end());
  tensor.borrowed = bytes;
  tensor.owner = std::move(owner);
  assert(static_cast<int64_t>(bytes.size()) == tensor.getNumElements() * elementBytes(tensor.elementType));
  return tensor;
}

MutableArrayRef<char> HostTensor::getBytes() {
  if (!borrowed.empty()) {
    bytes.assign(borrowed.begin(), borrowed.end());
    borrowed = {};
    owner.reset();
  }
  return bytes;
}

int64_t HostTensor::getNumElements() const { return product(shape); }

void HostTensor::resize(ArrayRef<int64_t> newShape) {
  shape.assign(newShape.begin(), newShape.end());
  borrowed = {};
  owner.reset();
  bytes.assign(product(shape) * elementBytes(elementType), 0);
}
