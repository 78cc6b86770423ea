//===- Emitter.cpp - Device ops as commands of the NPU --------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emitter.h"

#include "device_dialect/Transforms/Addresses.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopConstOps.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Type;

std::optional<Type> typeOf(mlir::Type element) {
  if (element.isF32()) {
    return Type::f32;
  }
  if (element.isF16() || element.isBF16()) {
    return element.isF16() ? Type::f16 : Type::bf16;
  }
  if (element.isUnsignedInteger(8)) {
    return Type::u8;
  }
  return element.isSignlessInteger(8)    ? std::optional(Type::i8)
         : element.isSignlessInteger(16) ? std::optional(Type::i16)
         : element.isSignlessInteger(32) ? std::optional(Type::i32)
                                         : std::nullopt;
}

llvm::Expected<Place> Emitter::place(Value value, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  auto type = cast<RankedTensorType>(value.getType());
  std::optional<Type> element = typeOf(type.getElementType());
  if (!element) {
    std::string text;
    llvm::raw_string_ostream(text) << type.getElementType();
    return refuse("has a tensor of " + text + ", which the chip has not");
  }
  Place made;
  made.tensor.type = *element;
  if (Value constant = device::getConstantRoot(value)) {
    std::optional<top::TensorData> data = top::getConstantData(constant);
    if (!data) {
      return refuse("has a constant without data");
    }
    made.tensor.region = Region::constants;
    made.tensor.offset = stream.addConstant(data->bytes);
  } else {
    std::optional<device::Address> address = device::getAddress(value);
    if (!address) {
      return refuse("has a tensor without an address");
    }
    // Arguments come before results among the buffers of the caller.
    int64_t buffer =
        address->memory < 0 ? -address->memory - 1 : int64_t(function.getNumArguments()) + address->memory - 1;
    made.tensor.region = address->memory == 0 ? Region::workspace : Region(int64_t(Region::io) + buffer);
    made.tensor.offset = address->offset;
  }
  for (int i = 0; i < 4; ++i) {
    made.shape.dims[i] = uint32_t(sizes[i]);
    int64_t stride = strides[i] * int64_t(hw::sizeOf(*element));
    if (stride > INT32_MAX) {
      return refuse("has a tensor larger than a stride of 2 GiB");
    }
    made.tensor.strides[i] = int32_t(stride);
  }
  return made;
}

llvm::Expected<Place> Emitter::placeBroadcast(Value value, const Shape &shape, ArrayRef<unsigned> axes) {
  ArrayRef<int64_t> dims = cast<RankedTensorType>(value.getType()).getShape();
  int64_t sizes[4], strides[4] = {0, 0, 0, 0}, stride = 1;
  std::copy(std::begin(shape.dims), std::end(shape.dims), sizes);
  for (size_t back = 1; back <= dims.size(); ++back) {
    int64_t size = dims[dims.size() - back];
    if (size != 1) {
      strides[axes[axes.size() - back]] = stride;
      stride *= size;
    }
  }
  return place(value, sizes, strides);
}

llvm::Error Emitter::emit(Operation *op) {
  return llvm::TypeSwitch<Operation *, llvm::Error>(op)
      .Case([&](device::ConvOp conv) { return emitConv(conv); })
      .Case([&](device::MatMulOp matmul) { return emitMatMul(matmul); })
      .Case([&](device::PoolOp pool) { return emitPool(pool); })
      .Case([&](device::ReduceOp reduce) { return emitReduce(reduce); })
      .Case([&](device::MapOp map) { return emitMap(map); })
      .Case([&](device::LutOp lut) { return emitLut(lut); })
      .Case([&](device::SoftmaxOp softmax) { return emitSoftmax(softmax); })
      .Case([&](device::CopyOp copy) { return emitCopy(copy); })
      .Case([&](device::ResizeOp resize) { return emitResize(resize); })
      .Default([](Operation *) { return refuse("has no form on the NPU yet"); });
}

/// Outputs that share the memory of another one are copied out.
llvm::Error Emitter::emitOutputs() {
  auto terminator = cast<func::ReturnOp>(function.getBody().front().getTerminator());
  for (auto [index, value] : llvm::enumerate(terminator.getOperands())) {
    std::optional<device::Address> address = device::getAddress(value);
    if (address && address->memory == int64_t(index) + 1 && address->offset == 0) {
      continue;
    }
    int64_t count = cast<RankedTensorType>(value.getType()).getNumElements();
    llvm::Expected<Place> from = place(value, {1, 1, 1, count}, {0, 0, 0, 1});
    if (!from) {
      return from.takeError();
    }
    hw::copy_command copy;
    copy.x = copy.y = from->tensor, copy.shape = from->shape;
    copy.y.region = Region(size_t(Region::io) + function.getNumArguments() + index), copy.y.offset = 0;
    stream.beginLayer("output");
    Tile tile;
    tile.stores.push_back(hw::encode(copy));
    stream.append(tile, false);
  }
  return llvm::Error::success();
}

LogicalResult Emitter::run() {
  bool good = true;
  for (Operation &op : function.getBody().front()) {
    if (isa<top::WeightOp, top::ConstantOp, func::ReturnOp>(op) || device::isElided(&op)) {
      continue;
    }
    stream.beginLayer(top::getDisplayName(op.getLoc()));
    if (llvm::Error error = emit(&op)) {
      op.emitError() << llvm::toString(std::move(error));
      good = false;
    }
  }
  if (llvm::Error error = emitOutputs()) {
    return function.emitError() << llvm::toString(std::move(error));
  }
  return success(good);
}

} // namespace tessera::npu
