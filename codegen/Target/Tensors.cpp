//===- Tensors.cpp - Tensors and steps of a .bmodel -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Target/Tensors.h"

#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/Layout.h"

using namespace mlir;

namespace tessera::codegen {

std::optional<bmodel::DType> dtypeOf(Type type) {
  using bmodel::DType;
  if (type.isF32()) {
    return DType::F32;
  }
  if (type.isF64()) {
    return DType::F64;
  }
  if (type.isF16()) {
    return DType::F16;
  }
  if (type.isBF16()) {
    return DType::BF16;
  }
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer) {
    return std::nullopt;
  }
  bool isUnsigned = integer.isUnsigned();
  switch (integer.getWidth()) {
  case 1:
    return DType::Bool;
  case 8:
    return isUnsigned ? DType::U8 : DType::I8;
  case 16:
    return isUnsigned ? DType::U16 : DType::I16;
  case 32:
    return isUnsigned ? DType::U32 : DType::I32;
  case 64:
    return isUnsigned ? DType::U64 : DType::I64;
  default:
    return std::nullopt;
  }
}

std::optional<bmodel::TensorDefT> describeTensor(RankedTensorType type, StringRef name,
                                                 llvm::function_ref<bmodel::Dim(Dim)> dimOf) {
  std::optional<bmodel::DType> dtype = dtypeOf(type.getElementType());
  Shape shape = type;
  if (!dtype || !(dimOf ? shape.isDetermined() : shape.isKnown())) {
    return std::nullopt;
  }
  bmodel::TensorDefT tensor;
  tensor.name = name.str();
  tensor.dtype = *dtype;
  for (Dim size : shape.dims()) {
    tensor.shape.push_back(size.isKnown() ? bmodel::constantDim(size.value()) : dimOf(size));
  }
  tensor.bytes = uint64_t(device::physicalBytes(type));
  if (device::BlockedAttr layout = device::getBlockedLayout(type)) {
    tensor.layout = bmodel::LayoutKind::ChannelBlocked;
    tensor.block = uint16_t(layout.getBlock());
    tensor.block_axis = 1;
  }
  return tensor;
}

std::unique_ptr<bmodel::StepDefT> copyStep(uint32_t from, uint32_t to) {
  bmodel::CopyDefT copy;
  copy.from = from, copy.to = to;
  auto step = std::make_unique<bmodel::StepDefT>();
  step->op.Set(copy);
  step->writes = {to};
  return step;
}

void setWorkspaceSizes(func::FuncOp function, SubnetProgram &program) {
  auto bytesOf = [&](StringRef name) {
    auto attribute = function->getAttrOfType<IntegerAttr>(name);
    return attribute ? uint64_t(attribute.getInt()) : 0;
  };
  program.workspaceBytes = bytesOf(device::DeviceDialect::kWorkspaceBytesAttr);
  program.workspaceLowerBound = bytesOf(device::DeviceDialect::kWorkspaceLowerBoundAttr);
}

} // namespace tessera::codegen
