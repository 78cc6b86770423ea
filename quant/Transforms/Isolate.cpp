//===- Isolate.cpp - Feeds every op the exact values of its operands ------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Isolate.h"

#include "quant/Transforms/Passes.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopOps.h"
#include "llvm/ADT/StringSet.h"

namespace tessera::quant {
#define GEN_PASS_DEF_ISOLATEPASS
#include "quant/Transforms/Passes.h.inc"

namespace {
using namespace mlir;

bool isFloat32(Value v) { return getElementTypeOrSelf(v.getType()).isF32(); }

/// Inserts the op that converts the result of `op` back to f32; returns null if `op` does not convert from f32.
Operation *undo(OpBuilder &builder, Operation *op) {
  Location loc = op->getLoc();
  if (auto q = dyn_cast<top::QuantizeOp>(op)) {
    return top::DequantizeOp::create(builder, loc, q.getX().getType(), q.getResult(), q.getScale(), q.getZeroPoint());
  }
  if (auto cast = dyn_cast<top::CastOp>(op); cast && isFloat32(cast.getX())) {
    return top::CastOp::create(builder, loc, cast.getX().getType(), cast.getResult(), builder.getF32Type());
  }
  return nullptr;
}

class Isolator {
public:
  Isolator(func::FuncOp function, const TensorFactors &factors)
      : function(function), factors(factors), builder(function.getContext()) {}

  void isolate(OpResult value, StringRef name) {
    Operation *op = value.getOwner();
    builder.setInsertionPointAfter(op);
    Operation *back = isFloat32(value) ? nullptr : undo(builder, op);
    if (!isFloat32(value) && !back) {
      return;
    }
    Value argument = addArgument(name, back ? op->getOperand(0).getType() : value.getType());
    Value given = scale(argument, name, [](float factor) { return 1 / factor; });
    if (back) {
      Operation *again = builder.clone(*op);
      again->setOperand(0, given);
      again->removeAttr(top::TopDialect::kOutputsAttr);
      value.replaceUsesWithIf(again->getResult(0), [&](OpOperand &use) { return use.getOwner() != back; });
      op->getOperand(0).replaceUsesWithIf(given, [&](OpOperand &use) { return use.getOwner() != op && reads(use); });
    } else {
      value.replaceAllUsesWith(given);
    }
    give(name, scale(back ? back->getResult(0) : Value(value), name, [](float factor) { return factor; }));
  }

  /// Replaces the function's results by the collected ones.
  void finish() {
    Operation *terminator = function.getBody().front().getTerminator();
    terminator->setOperands(results);
    function.setType(
        builder.getFunctionType(function.getBody().front().getArgumentTypes(), ValueRange(results).getTypes()));
    function.setAllResultAttrs(resultNames);
  }

private:
  /// Excludes other quantize and cast ops that read the same value: their results are separate tensors, isolated by
  /// themselves.
  static bool reads(OpOperand &use) { return !isa<top::QuantizeOp, top::CastOp>(use.getOwner()); }

  /// Multiplies `value` by `by` of the tensor's channel factors; returns it unchanged if it has none.
  Value scale(Value value, StringRef name, llvm::function_ref<float(float)> by) {
    auto it = factors.find(name);
    if (it == factors.end()) {
      return value;
    }
    std::vector<float> scales(it->second.factors.size());
    llvm::transform(it->second.factors, scales.begin(), by);
    SmallVector<int64_t> shape(cast<RankedTensorType>(value.getType()).getRank(), 1);
    shape[it->second.axis] = scales.size();
    ArrayRef<char> bytes(reinterpret_cast<const char *>(scales.data()), scales.size() * sizeof(float));
    auto type = RankedTensorType::get(shape, builder.getF32Type());
    Value constant = top::createConstant(builder, value.getLoc(), type, bytes, "factors");
    return top::MulOp::create(builder, value.getLoc(), value.getType(), value, constant);
  }

  Value addArgument(StringRef name, Type type) {
    auto attributes =
        builder.getDictionaryAttr(builder.getNamedAttr(top::TopDialect::kNameAttr, builder.getStringAttr(name)));
    unsigned index = function.getNumArguments();
    (void)function.insertArgument(index, type, attributes, function.getLoc());
    return function.getArgument(index);
  }

  void give(StringRef name, Value value) {
    results.push_back(value);
    resultNames.push_back(
        builder.getDictionaryAttr(builder.getNamedAttr(top::TopDialect::kNameAttr, builder.getStringAttr(name))));
  }

  func::FuncOp function;
  const TensorFactors &factors;
  OpBuilder builder;
  SmallVector<Value> results;
  SmallVector<DictionaryAttr> resultNames;
};

class IsolatePass : public impl::IsolatePassBase<IsolatePass> {
  using IsolatePassBase::IsolatePassBase;

  void runOnOperation() override {
    isolateOps(getOperation(), [](StringRef) { return true; });
  }
};
} // namespace

void isolateOps(func::FuncOp function, llvm::function_ref<bool(llvm::StringRef)> known, const TensorFactors &factors) {
  SmallVector<std::pair<OpResult, std::string>> named;
  llvm::StringSet<> seen;
  for (Operation &op : function.getBody().front()) {
    for (OpResult result : op.getResults()) {
      StringRef name = top::getTensorName(result);
      if (!name.empty() && known(name) && seen.insert(name).second) {
        named.emplace_back(result, name.str());
      }
    }
  }
  Isolator isolator(function, factors);
  for (auto &[value, name] : named) {
    isolator.isolate(value, name);
  }
  isolator.finish();
}

} // namespace tessera::quant
