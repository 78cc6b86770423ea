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

int64_t HostTensor::getNumElements() const { return product(shape); }

void HostTensor::resize(ArrayRef<int64_t> newShape) {
  shape.assign(newShape.begin(), newShape.end());
  bytes.assign(product(shape) * elementBytes(elementType), 0);
}
