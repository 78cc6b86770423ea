//===- InputsOutputs.cpp - Inputs and outputs as integers ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/InputsOutputs.h"

#include "quant/Transforms/Precision/OpKinds.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/State.h"
#include "top_dialect/IR/TopOps.h"

using namespace mlir;

namespace tessera::quant {
namespace {

/// Returns scale and zero point of a per-tensor i8 quantisation; nothing for other kinds.
std::optional<std::pair<float, int8_t>> parametersOf(Value scale, Value zeroPoint) {
  std::optional<top::TensorData> s = top::getConstantData(scale), z = top::getConstantData(zeroPoint);
  if (!s || !z || s->type.getNumElements() != 1 || z->type.getNumElements() != 1 ||
      !z->type.getElementType().isSignlessInteger(8)) {
    return std::nullopt;
  }
  return std::pair(s->data<float>()[0], z->data<int8_t>()[0]);
}

void exposeInput(OpBuilder &builder, BlockArgument argument, StringRef name, QuantizeReport &report) {
  SmallVector<top::QuantizeOp> pairs;
  for (Operation *user : argument.getUsers()) {
    if (auto quantize = dyn_cast<top::QuantizeOp>(user);
        quantize && parametersOf(quantize.getScale(), quantize.getZeroPoint())) {
      pairs.push_back(quantize);
    }
  }
  if (pairs.empty()) {
    report.floatInputsOutputs.push_back("input '" + name.str() + "' stays f32: nothing reads it as integers");
    return;
  }
  auto parameters = *parametersOf(pairs.front().getScale(), pairs.front().getZeroPoint());
  llvm::erase_if(pairs, [&](top::QuantizeOp other) {
    return *parametersOf(other.getScale(), other.getZeroPoint()) != parameters;
  });
  Type floats = argument.getType();
  argument.setType(pairs.front().getType());
  builder.setInsertionPointToStart(argument.getOwner());
  Value scale = top::createScalar(builder, argument.getLoc(), builder.getF32Type(), parameters.first);
  Value zeroPoint = top::createScalar(builder, argument.getLoc(), builder.getI8Type(), parameters.second);
  auto reals = top::DequantizeOp::create(builder, argument.getLoc(), floats, argument, scale, zeroPoint);
  argument.replaceUsesWithIf(
      reals, [&](OpOperand &use) { return use.getOwner() != reals && !llvm::is_contained(pairs, use.getOwner()); });
  for (top::QuantizeOp pair : pairs) {
    pair.replaceAllUsesWith(Value(argument));
    pair.erase();
  }
  if (reals.use_empty()) {
    reals.erase();
  }
  report.tensors.push_back({name.str(), parameters.first, parameters.second});
}

/// Inserts a quantize of `value` by its range in the table. Returns null if the table does not have the tensor, or
/// requests float32 for it.
top::QuantizeOp quantizeOutput(OpBuilder &builder, Value value, StringRef name, const CalibrationTable &table) {
  StringRef own = top::getTensorName(value);
  const Range *range = table.find(own.empty() ? name : own);
  Operation *op = value.getDefiningOp();
  if (!range || range->isFloat || !op) {
    return {};
  }
  builder.setInsertionPointAfter(op);
  Value scale = top::createScalar(builder, op->getLoc(), builder.getF32Type(), range->scale);
  Value zeroPoint = top::createScalar(builder, op->getLoc(), builder.getI8Type(), range->zeroPoint);
  auto type = cast<RankedTensorType>(value.getType()).clone(builder.getI8Type());
  auto q = top::QuantizeOp::create(builder, op->getLoc(), type, value, scale, zeroPoint);
  if (op->getNumResults() == 1 && value.hasNUses(2)) { // used by the output and the quantize only: the integers take
                                                       // over the tensor's name
    if (Attribute names = op->removeAttr(top::TopDialect::kOutputsAttr)) {
      q->setAttr(top::TopDialect::kOutputsAttr, names);
    }
  }
  return q;
}

void exposeOutput(OpBuilder &builder, OpOperand &output, StringRef name, const CalibrationTable &table,
                  QuantizeReport &report) {
  Value integers;
  std::optional<std::pair<float, int8_t>> parameters;
  if (auto reals = output.get().getDefiningOp<top::DequantizeOp>(); reals && !top::isConstant(reals.getX())) {
    integers = reals.getX();
    parameters = parametersOf(reals.getScale(), reals.getZeroPoint());
  }
  if (!parameters) {
    if (top::QuantizeOp result = quantizeOutput(builder, output.get(), name, table)) {
      integers = result;
      parameters = parametersOf(result.getScale(), result.getZeroPoint());
    }
  }
  if (!parameters) {
    report.floatInputsOutputs.push_back("output '" + name.str() +
                                        "' stays f32: it has no line in the calibration table");
    return;
  }
  output.set(integers);
  report.tensors.push_back({name.str(), parameters->first, parameters->second});
}

} // namespace

void exposeIntegers(func::FuncOp function, const CalibrationTable &table, const InputsOutputs &asked,
                    QuantizeReport &report) {
  OpBuilder builder(function.getContext());
  Operation *end = function.getBody().front().getTerminator();
  for (BlockArgument argument : function.getArguments()) {
    if (asked.quantInputs && isF32(argument) && !top::isStateArgument(function, argument.getArgNumber())) {
      exposeInput(builder, argument, top::getInputName(argument), report);
    }
  }
  for (OpOperand &output : end->getOpOperands()) {
    auto name = function.getResultAttrOfType<StringAttr>(output.getOperandNumber(), top::TopDialect::kNameAttr);
    if (asked.quantOutputs && isF32(output.get()) && !top::isStateResult(function, output.getOperandNumber())) {
      exposeOutput(builder, output, name ? name.getValue() : "", table, report);
    }
  }
  function.setFunctionType(builder.getFunctionType(function.getBody().getArgumentTypes(), end->getOperandTypes()));
}

} // namespace tessera::quant
