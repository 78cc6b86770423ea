//===- EmitMatMuls.cpp - Products of tensors with tensors on the NPU ------===//
// SPDX-License-Identifier: Apache-2.0
//
// One product for each index of the batch dims; the second matrix comes to local memory as weights do.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Emitter.h"
#include "codegen/Npu/Product.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
namespace {

/// Strides of a value that broadcasts to the dims of the result.
SmallVector<int64_t> stridesIn(ArrayRef<int64_t> result, Value value) {
  return broadcastNest({result, typeOf(value).getShape()}).strides[1];
}

} // namespace

llvm::Error Emitter::emitMatMuls(device::MatMulOp op) {
  ArrayRef<int64_t> aDims = typeOf(op.getA()).getShape(), bDims = typeOf(op.getB()).getShape(),
                    dims = typeOf(op.getY()).getShape(), batch = dims.drop_back(2);
  int64_t rows = dims[batch.size()], outputs = dims.back();
  int64_t inner = op.getTransA() ? aDims[aDims.size() - 2] : aDims.back();
  if (op.getScales()) {
    return refuse("multiplies transposed floats by integers, which is not emitted yet");
  }
  if (llvm::Error error = checkProduct(op.getA(), op.getB(), chip)) {
    return error;
  }
  if (rows > UINT16_MAX) {
    return refuse("has more rows than a command can hold");
  }
  std::vector<int32_t> bias;
  if (op.getBias()) {
    llvm::Expected<std::vector<int32_t>> values = constantValues<int32_t>(op.getBias(), "a bias");
    if (!values) {
      return values.takeError();
    }
    bias = std::move(*values);
  }
  SmallVector<int64_t> aBatches = batchesOf(aDims.drop_back(2), batch), bBatches = batchesOf(bDims.drop_back(2), batch);
  for (int64_t index = 0; index < int64_t(aBatches.size()); ++index) {
    auto [down, across] = op.getTransA() ? std::pair(int64_t(1), rows) : std::pair(inner, int64_t(1));
    llvm::Expected<Place> x =
        place(op.getA(), {1, inner, rows, 1}, {0, across, down, 1}, aBatches[index] * rows * inner);
    llvm::Expected<Place> y = place(op.getY(), {1, outputs, rows, 1}, {0, 1, outputs, 1}, index * rows * outputs);
    int64_t byOutput = op.getTransB() ? inner : 1, byChannel = op.getTransB() ? 1 : outputs;
    llvm::Expected<Place> w =
        placeOutside(op.getB(), {1, outputs, 1, inner}, {0, byOutput, 0, byChannel}, bBatches[index] * inner * outputs);
    if (!x || !y || !w) {
      return llvm::joinErrors(llvm::joinErrors(x.takeError(), y.takeError()), w.takeError());
    }
    uint64_t record = 0;
    Product product;
    product.x = *x, product.y = *y, product.second = *w, product.weightType = w->tensor.type, product.bias = bias;
    product.record = &record, product.weights = Shape{{1, uint32_t(outputs), 1, uint32_t(inner)}};
    auto placeExtra = [&](Value value) -> llvm::Expected<Place> {
      SmallVector<int64_t> strides = stridesIn(dims, value);
      int64_t offset = 0, left = index;
      for (size_t dim = batch.size(); dim-- > 0; left /= batch[dim]) {
        offset += left % batch[dim] * strides[dim];
      }
      return place(value, {1, outputs, rows, 1}, {0, strides.back(), strides[batch.size()], 0}, offset);
    };
    if (llvm::Error error = setEpilogue(product, op.getEpilogue(), op.getExtras(), typeOf(op.getY()).getElementType(),
                                        stream, placeExtra)) {
      return error;
    }
    if (llvm::Error error = appendProduct(product, tiler)) {
      return error;
    }
  }
  return llvm::Error::success();
}

} // namespace tessera::npu
