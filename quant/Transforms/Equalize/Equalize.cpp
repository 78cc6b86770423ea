//===- Equalize.cpp - Scales channels to similar ranges -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Equalize/Equalize.h"

#include "quant/Transforms/Precision/OpKinds.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TensorTypes.h"
#include "top_dialect/IR/TopOps.h"
#include <cmath>

using namespace mlir;

namespace tessera::quant {
namespace {

/// Rewrites a function, given the factor of each channel group.
class Scaler {
public:
  Scaler(func::FuncOp function, const ChannelFlow &flow, std::vector<float> byGroup)
      : function(function), flow(flow), byGroup(std::move(byGroup)), builder(function.getContext()) {}

  void run() {
    for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
      if (std::optional<ContractionChannels> contraction = contractionChannels(&op)) {
        scaleContraction(&op, *contraction);
      } else if (isa<top::LayerNormOp>(op)) {
        if (std::vector<float> out = factorsOf(op.getResult(0)); !out.empty()) {
          for (OpOperand &operand : llvm::drop_begin(op.getOpOperands())) {
            divide(operand, 0, out);
          }
        }
      } else if (isa<top::AddOp, top::SubOp>(op)) {
        scaleConstantTerm(&op);
      }
    }
    for (Value origin : flow.origins()) {
      Operation *op = origin.getDefiningOp();
      if (!contractionChannels(op) && !isa<top::LayerNormOp>(op)) {
        divideResult(origin);
      }
    }
  }

  /// Returns the factor of each channel of `value`; empty if all are 1.
  std::vector<float> factorsOf(Value value) const {
    const ChannelFlow::Channels *channels = flow.of(value);
    std::vector<float> factors;
    for (int group : channels ? ArrayRef<int>(channels->groups) : ArrayRef<int>()) {
      factors.push_back(byGroup[group]);
    }
    bool all = llvm::all_of(factors, [](float f) { return f == 1; });
    return all ? std::vector<float>() : factors;
  }

private:
  /// Replaces an f32 constant by one with each element changed.
  void change(OpOperand &operand, llvm::function_ref<float(int64_t index, float value)> changed) {
    top::TensorData data = *top::getConstantData(operand.get());
    std::vector<float> values(data.data<float>());
    for (auto [i, value] : llvm::enumerate(values)) {
      value = changed(i, value);
    }
    set(operand, data.type, values);
  }

  void set(OpOperand &operand, RankedTensorType type, ArrayRef<float> values) {
    builder.setInsertionPoint(operand.getOwner());
    auto weight = operand.get().getDefiningOp<top::WeightOp>();
    std::string hint = (weight ? weight.getKey().str() : "constant") + "_equalized";
    ArrayRef<char> bytes(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float));
    operand.set(top::createConstant(builder, operand.get().getLoc(), type, bytes, hint));
  }

  /// Divides a constant by factors along its dim `axis`.
  void divide(OpOperand &operand, int64_t axis, ArrayRef<float> factors) {
    int64_t inner = 1;
    for (int64_t size : typeOf(operand.get()).getShape().drop_front(axis + 1)) {
      inner *= size;
    }
    change(operand, [&](int64_t i, float value) { return value / factors[i / inner % factors.size()]; });
  }

  void scaleContraction(Operation *op, const ContractionChannels &contraction) {
    std::vector<float> in = factorsOf(op->getOperand(0)), out = factorsOf(op->getResult(0));
    if (in.empty() && out.empty()) {
      return;
    }
    top::TensorData data = *top::getConstantData(op->getOperand(1));
    std::vector<float> values(data.data<float>());
    contraction.forEachWeight([&](int64_t i, int64_t input, int64_t output) {
      double scaled = double(values[i]) * (in.empty() ? 1.0f : in[input]);
      values[i] = float(scaled / (out.empty() ? 1.0f : out[output]));
    });
    set(op->getOpOperand(1), data.type, values);
    if (biasOf(op) && !out.empty()) {
      divide(op->getOpOperand(2), 0, out);
    }
  }

  /// Divides the constant of x + constant by the factors of x. The constant is broadcast to one value per channel if
  /// needed.
  void scaleConstantTerm(Operation *op) {
    std::vector<float> factors = factorsOf(op->getResult(0));
    auto constant = llvm::find_if(op->getOpOperands(), [](OpOperand &it) { return top::isConstant(it.get()); });
    if (factors.empty() || constant == op->getOpOperands().end()) {
      return;
    }
    int64_t rank = typeOf(op->getResult(0)).getRank(), axis = flow.of(op->getResult(0))->axis;
    top::TensorData data = *top::getConstantData(constant->get());
    SmallVector<int64_t> shape(rank - data.type.getRank(), 1);
    llvm::append_range(shape, data.type.getShape());
    int64_t inner = 1, repeat = shape[axis] == 1 ? factors.size() : 1;
    for (int64_t size : ArrayRef(shape).drop_front(axis + 1)) {
      inner *= size;
    }
    std::vector<float> values;
    for (int64_t i = 0, end = data.data<float>().size() * repeat; i < end; ++i) {
      int64_t channel = i / inner % factors.size(), from = repeat == 1 ? i : i / inner / repeat * inner + i % inner;
      values.push_back(data.data<float>()[from] / factors[channel]);
    }
    shape[axis] = factors.size();
    set(*constant, RankedTensorType::get(shape, data.type.getElementType()), values);
  }

  /// Inserts a multiplication after an op that cannot absorb the factors. It is fused into that op's kernel later.
  void divideResult(Value value) {
    std::vector<float> factors = factorsOf(value);
    if (factors.empty()) {
      return;
    }
    Operation *op = value.getDefiningOp();
    builder.setInsertionPointAfter(op);
    SmallVector<int64_t> shape(typeOf(value).getRank(), 1);
    shape[flow.of(value)->axis] = factors.size();
    std::vector<float> inverse(factors.size());
    llvm::transform(factors, inverse.begin(), [](float f) { return 1 / f; });
    ArrayRef<char> bytes(reinterpret_cast<const char *>(inverse.data()), inverse.size() * sizeof(float));
    Value by = top::createConstant(builder, op->getLoc(), RankedTensorType::get(shape, builder.getF32Type()), bytes,
                                   "equalization");
    auto scaled = top::MulOp::create(builder, op->getLoc(), value.getType(), value, by);
    value.replaceAllUsesExcept(scaled, scaled);
    if (Attribute names = op->removeAttr(top::TopDialect::kOutputsAttr)) {
      scaled->setAttr(top::TopDialect::kOutputsAttr, names);
    }
  }

  func::FuncOp function;
  const ChannelFlow &flow;
  std::vector<float> byGroup;
  OpBuilder builder;
};

} // namespace

llvm::Expected<TensorFactors> applyFactors(func::FuncOp function, const ChannelFlow &flow,
                                           const OriginFactors &origins) {
  std::vector<float> byGroup(flow.groups(), 0.0f);
  byGroup[0] = 1;
  for (Value origin : flow.origins()) {
    StringRef name = top::getTensorName(origin);
    const ChannelFlow::Channels &channels = *flow.of(origin);
    auto it = origins.find(name);
    bool fits = it == origins.end() || it->second.size() == channels.groups.size();
    for (size_t i = 0; fits && i < channels.groups.size(); ++i) {
      float factor = it == origins.end() ? 1.0f : it->second[i], &known = byGroup[channels.groups[i]];
      fits = factor > 0 && std::isfinite(factor) && (known == 0 || known == factor);
      known = factor;
    }
    if (!fits) {
      return llvm::createStringError("the factors of tensor '" + name +
                                     "' do not match the model: run run_calibration again");
    }
  }
  Scaler scaler(function, flow, std::move(byGroup));
  TensorFactors all;
  for (Operation &op : function.getBody().front()) {
    for (Value result : op.getResults()) {
      std::vector<float> factors = scaler.factorsOf(result);
      if (StringRef name = top::getTensorName(result); !factors.empty() && !name.empty()) {
        all[name] = {flow.of(result)->axis, std::move(factors)};
      }
    }
  }
  scaler.run();
  return all;
}

} // namespace tessera::quant
