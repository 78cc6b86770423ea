//===- StripQDQ.cpp - Restores the float form of a quantised model --------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/StripQDQ.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tessera::quant {
namespace {

template <typename T>
int64_t first(Value constant) {
  return top::getConstantData(constant)->data<T>()[0];
}

TensorForm formOf(top::QuantizeOp q, StringRef name) {
  TensorForm form{name.str(), top::getConstantData(q.getScale())->data<float>()[0], 0, -128, 127};
  if (auto qmax = static_cast<int64_t>(q.getLevels())) {
    form.lowest = -qmax, form.highest = qmax;
  } else {
    form.zeroPoint = first<int8_t>(q.getZeroPoint());
    form.lowest = form.zeroPoint ? -128 : -127;
  }
  return form;
}

StringRef nameOf(Value v) {
  auto argument = dyn_cast<BlockArgument>(v);
  return argument ? top::getInputName(argument) : top::getTensorName(v);
}

int64_t countMacs(top::AttentionOp op) {
  Shape q = op.getQ(), v = op.getV();
  Dim macs = countElements(q.dropBack()) * v[v.rank() - 2] * (q.back() + v.back());
  return macs.isUnknown() ? 0 : likelyOf(macs);
}

/// Notes in the forms of its operands that `op` reads them.
void addReader(top::AttentionOp op, std::vector<TensorForm> &forms) {
  for (Value operand : op->getOperands().take_front(3)) {
    auto form = llvm::find_if(forms, [&](const TensorForm &each) { return each.name == nameOf(operand); });
    if (form != forms.end()) {
      form->attention = nameOf(op.getQ()).str();
      form->attentionProducts = countMacs(op);
    }
  }
}

/// Returns the f32 constant that `op` computes from an i8 constant with one scale per index of one dim.
Value dequantized(OpBuilder &builder, top::DequantizeOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  std::optional<top::TensorData> integers = top::getConstantData(op.getX()),
                                 scale = top::getConstantData(op.getScale());
  ArrayRef<int8_t> q = integers->data<int8_t>();
  ArrayRef<float> scales = scale->data<float>();
  int64_t inner = 1;
  for (int64_t i = type.getRank() - 1; i >= 0 && scale->type.getDimSize(i) == 1; --i) {
    inner *= type.getDimSize(i);
  }
  std::vector<float> real(q.size());
  for (size_t i = 0, run = 0; i < real.size(); ++run) {
    const float step = scales[run % scales.size()];
    for (size_t end = i + inner; i < end; ++i) {
      real[i] = static_cast<float>(q[i]) * step;
    }
  }
  return top::createConstant(builder, op.getLoc(), type,
                             ArrayRef(reinterpret_cast<const char *>(real.data()), real.size() * sizeof(float)),
                             "rounded");
}

bool isPair(Operation &op) { return isa<top::QuantizeOp, top::DequantizeOp>(op); }

/// Erases `op` and those of its constants that do not have other readers.
void eraseWithConstants(Operation *op) {
  SmallVector<Value> operands(op->getOperands());
  op->erase();
  for (Value operand : llvm::SetVector<Value>(llvm::from_range, operands)) {
    if (top::isConstant(operand) && operand.use_empty()) {
      operand.getDefiningOp()->erase();
    }
  }
}

} // namespace

StripQDQ::StripQDQ(func::FuncOp function) : function(function) {
  for (Operation &op : function.getBody().front()) {
    if (isPair(op)) {
      own.insert(&op);
    }
  }
}

std::vector<TensorForm> StripQDQ::run() {
  std::vector<TensorForm> forms;
  OpBuilder builder(function.getContext());
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
    if (own.contains(&op)) {
      continue;
    }
    if (auto attention = dyn_cast<top::AttentionOp>(op)) {
      if (attention.getLevels()) {
        addReader(attention, forms);
      }
      attention.removeLevelsAttr();
    } else if (auto dq = dyn_cast<top::DequantizeOp>(op)) {
      auto q = dq.getX().getDefiningOp<top::QuantizeOp>();
      builder.setInsertionPoint(dq);
      dq.replaceAllUsesWith(q ? q.getX() : dequantized(builder, dq));
      eraseWithConstants(dq);
      if (!q) {
        continue;
      }
      Value v = q.getX();
      auto argument = dyn_cast<BlockArgument>(v);
      if (Attribute names = q->getAttr(top::TopDialect::kOutputsAttr); names && !argument) {
        v.getDefiningOp()->setAttr(top::TopDialect::kOutputsAttr, names);
      }
      StringRef name = nameOf(v);
      if (!name.empty()) {
        forms.push_back(formOf(q, name));
      }
      eraseWithConstants(q);
    }
  }
  return forms;
}

} // namespace tessera::quant
