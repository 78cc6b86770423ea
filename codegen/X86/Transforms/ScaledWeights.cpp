//===- ScaledWeights.cpp - Scales of integer weights ----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Transforms/ScaledWeights.h"

#include "device_dialect/IR/DeviceMoveOps.h"
#include "device_dialect/IR/WeightScales.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TensorTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::x86 {
namespace {

/// Calls |body| with |op| as a ConvOp or MatMulOp.
template <typename Body>
auto withProduct(Operation *op, Body body) {
  auto conv = dyn_cast<device::ConvOp>(op);
  return conv ? body(conv) : body(cast<device::MatMulOp>(op));
}

/// Returns |vector| [channels] reshaped to broadcast along the channels of |op|'s result.
Value alongChannels(OpBuilder &builder, Operation *op, Value vector) {
  int64_t channels = typeOf(vector).getNumElements();
  SmallVector<int64_t> dims{channels};
  if (isa<device::ConvOp>(op)) {
    dims.append(typeOf(op->getResult(0)).getRank() - 2, 1);
  }
  auto type = RankedTensorType::get(dims, builder.getF32Type());
  if (type == vector.getType()) {
    return vector;
  }
  if (std::optional<top::TensorData> data = top::getConstantData(vector)) {
    return top::createConstant(builder, vector.getLoc(), type, data->bytes, "per_channel");
  }
  return device::ReshapeOp::create(builder, vector.getLoc(), type, vector);
}

} // namespace

Value scalesOf(Operation *op) {
  if (auto conv = dyn_cast<device::ConvOp>(op)) {
    return conv.getScales();
  }
  auto matmul = dyn_cast<device::MatMulOp>(op);
  return matmul ? matmul.getScales() : Value();
}

void dropScales(Operation *op) {
  withProduct(op, [](auto product) {
    Value scales = product.getScales();
    product.getScalesMutable().clear();
    product.setWeightGroup(0);
    if (Operation *constant = scales.getDefiningOp(); constant && scales.use_empty()) {
      constant->erase();
    }
  });
}

void dequantiseWeights(Operation *op) {
  Value weight = op->getOperand(1);
  std::optional<top::TensorData> integers = top::getConstantData(weight);
  std::optional<top::TensorData> scales = top::getConstantData(scalesOf(op));
  assert(integers && scales && "weights and scales are constants");
  auto conv = dyn_cast<device::ConvOp>(op);
  ArrayRef<int64_t> shape = integers->type.getShape();
  auto matmul = dyn_cast<device::MatMulOp>(op);
  device::WeightScales order = conv
                                   ? device::WeightScales::ofConv(shape, conv.getWeightGroup())
                                   : device::WeightScales::ofMatMul(shape, matmul.getWeightGroup(), matmul.getTransB());
  std::vector<float> floats = order.apply(integers->data<int8_t>(), scales->data<float>());
  OpBuilder builder(op);
  ArrayRef<char> bytes(reinterpret_cast<const char *>(floats.data()), floats.size() * sizeof(float));
  op->setOperand(1, top::createConstant(builder, weight.getLoc(), RankedTensorType::get(shape, builder.getF32Type()),
                                        bytes, "dequantized"));
  dropScales(op);
  if (weight.use_empty()) {
    weight.getDefiningOp()->erase();
  }
}

void scaleInEpilogue(Operation *op) {
  auto owner = cast<device::EpilogueInterface>(op);
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Value scales = scalesOf(op);
  std::optional<top::TensorData> data = top::getConstantData(scales);
  assert(data && typeOf(scales).getDimSize(0) == 1 && "one constant scale per channel");
  auto vector = RankedTensorType::get({typeOf(scales).getDimSize(1)}, builder.getF32Type());
  SmallVector<Value> extras(owner.getEpilogueOperands()), added;
  added.push_back(alongChannels(builder, op, top::createConstant(builder, loc, vector, data->bytes, "weight_scales")));
  withProduct(op, [&](auto product) {
    if (Value bias = product.getBias()) {
      added.push_back(alongChannels(builder, op, bias));
      product.getBiasMutable().clear();
    }
  });
  dropScales(op);
  Region &region = owner.getEpilogueRegion();
  if (region.empty()) {
    Block *block = builder.createBlock(&region, region.end(), builder.getF32Type(), loc);
    device::YieldOp::create(builder, loc, ValueRange(block->getArgument(0)));
  }
  Block &block = region.front();
  builder.setInsertionPointToStart(&block);
  Value sum = block.getArgument(0), factor = block.addArgument(builder.getF32Type(), loc);
  auto scaled = arith::MulFOp::create(builder, loc, sum, factor);
  Value value = scaled;
  SmallPtrSet<Operation *, 1> except{scaled};
  if (added.size() > 1) {
    value = arith::AddFOp::create(builder, loc, value, block.addArgument(builder.getF32Type(), loc));
  }
  sum.replaceAllUsesExcept(value, except);
  llvm::append_range(extras, added);
  owner.setEpilogueOperands(extras);
}

} // namespace tessera::x86
