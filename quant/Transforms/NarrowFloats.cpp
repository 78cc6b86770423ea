//===- NarrowFloats.cpp - Weights and activations in 16-bit floats --------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/NarrowFloats.h"

#include "quant/Transforms/OpKinds.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/NarrowFloats.h"
#include "top_dialect/IR/TensorNames.h"
#include "top_dialect/IR/TopOps.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;

namespace tessera::quant {
namespace {

constexpr float kLargestF16 = 65504;

/// Up to so many products are few: roundings of them to 16 bits hardly average out, and such weights are few. f16's
/// roundings are an eighth of bf16's.
int64_t fewProducts(Type type) { return type.isBF16() ? 63 : 32; }

bool isF32(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getElementType().isF32();
}

/// Whether |op| computes on operands of 16 bits. The others compute in f32 on f32.
bool readsNarrow(Operation *op) {
  OpKind kind = kindOf(op);
  return kind == OpKind::product || kind == OpKind::elementwise || kind == OpKind::blend ||
         isa<top::LayerNormOp, top::ConvOp, top::ConvTransposeOp, top::MatMulOp>(op);
}

bool isMove(Operation *op) { return kindOf(op) == OpKind::move || kindOf(op) == OpKind::concat; }

/// Whether an elementwise reader of |op|'s result can become part of the same step.
bool takesEpilogue(Operation *op) {
  OpKind kind = kindOf(op);
  return kind == OpKind::product || kind == OpKind::elementwise || isa<top::AvgPoolOp, top::ReduceOp>(op);
}

class Narrower {
public:
  Narrower(func::FuncOp function, const CalibrationTable &table, const Decisions &decisions, Precision precision)
      : function(function), table(table), decisions(decisions), precision(precision), builder(function.getContext()) {
    for (Operation &op : function.getBody().front().without_terminator()) {
      order[&op] = order.size();
      ops.push_back(&op);
    }
  }

  NarrowFloats run() {
    for (Operation *op : ops) {
      Type type = typeOf(op);
      if (!type) {
        continue;
      }
      if (std::string reason = type.isF16() ? beyondF16(op) : ""; !reason.empty()) {
        result.kept.insert({op, reason});
      } else {
        types[op] = type;
        result.ops.insert(op);
      }
    }
    llvm::for_each(llvm::reverse(ops), [&](Operation *op) { noteReaders(op); });
    for (Operation *op : ops) {
      if (Type type = types.lookup(op)) {
        if (!sumsFew(op)) {
          narrowWeights(op, type);
        }
        for (Value value : op->getResults()) {
          if (isF32(value) && isStored(value) && !exact.contains(value) && !(type.isBF16() && isSensitive(value))) {
            insertPair(value, type);
          }
        }
      }
    }
    for (BlockArgument input : function.getArguments()) {
      // f16 might not hold it.
      if (Type type = typeOfReaders(input); type && type.isBF16() && !isSensitive(input)) {
        builder.setInsertionPointToStart(&function.getBody().front());
        round(input, type);
      }
    }
    return std::move(result);
  }

private:
  /// What |input| of the network is rounded to: where convolutions of 16 bits alone read it. Null where it stays.
  Type typeOfReaders(BlockArgument input) {
    Type type;
    for (OpOperand &use : input.getUses()) {
      Operation *user = use.getOwner();
      Type own = types.lookup(user);
      bool first = use.getOperandNumber() == 0 && isa<top::ConvOp>(user);
      if (!first || !own || (type && own != type) || sumsFew(user) || staysF32(user)) {
        return {};
      }
      type = own;
    }
    return isF32(input) ? type : Type();
  }

  /// Whether |op| is a convolution that sums few products, as depthwise ones do, and would do so in 16 bits. (Of
  /// matmuls, weights are what memory holds.)
  bool sumsFew(Operation *op) {
    Type type = types.lookup(op);
    return type && kindOf(op) == OpKind::product && !isa<top::MatMulOp>(op) &&
           top::isConstant(weightOf(op).operand->get()) && reductionLength(op) <= fewProducts(type);
  }

  /// The type that |op| is to be held in, null for others.
  Type typeOf(Operation *op) {
    bool plain = !isa<top::QuantizeOp, top::DequantizeOp, top::CastOp>(op) && isa<top::TopDialect>(op->getDialect()) &&
                 llvm::any_of(op->getResults(), isF32) && !top::isConstant(op->getResult(0));
    if (!plain || decisions.integers.contains(op)) {
      return {};
    }
    const Choice *choice = decisions.asked.lookup(op);
    switch (choice ? choice->precision : precision) {
    case Precision::BF16:
      return builder.getBF16Type();
    case Precision::F16:
      return builder.getF16Type();
    default:
      return {};
    }
  }

  bool staysF32(Operation *op) {
    const Choice *choice = decisions.asked.lookup(op);
    return result.kept.contains(op) || (choice && choice->precision == Precision::F32);
  }

  /// Why f16 cannot hold a constant or a result of |op|; empty if it can. Infinities are in its range.
  std::string beyondF16(Operation *op) {
    for (Value operand : op->getOperands()) {
      std::optional<top::TensorData> data = isF32(operand) ? top::getConstantData(operand) : std::nullopt;
      float largest = 0;
      for (float value : data ? data->data<float>() : ArrayRef<float>()) {
        largest = std::isfinite(value) ? std::max(largest, std::fabs(value)) : largest;
      }
      if (largest > kLargestF16) {
        return llvm::formatv("a constant reaches {0:e3}, f16 ends at {1}", largest, int64_t(kLargestF16));
      }
    }
    for (Value value : op->getResults()) {
      const Range *range = table.find(top::getTensorName(value));
      if (float largest = range ? range->magnitude() : 0; largest > kLargestF16) {
        return llvm::formatv("its result reaches {0:e3}, f16 ends at {1}", largest, int64_t(kLargestF16));
      }
    }
    return "";
  }

  /// Whether the table says that 8 bits alone in |value| move the outputs by more than that: bf16 has as few.
  bool isSensitive(Value value) {
    constexpr double kMostError = 0.05;
    const Range *range = table.find(top::getTensorName(value));
    return range && range->error.value_or(0) > kMostError;
  }

  void narrowWeights(Operation *op, Type type) {
    SmallVector<unsigned> weights;
    if (isa<top::ConvOp, top::ConvTransposeOp, top::MatMulOp>(op)) {
      weights = {0, 1};
    } else if (isa<top::RnnOp>(op)) {
      weights = {1, 2};
    } else if (isa<top::GatherOp>(op)) {
      weights = {0};
    }
    for (unsigned index : weights) {
      Value weight = op->getOperand(index);
      if (isF32(weight) && top::isConstant(weight)) {
        builder.setInsertionPoint(op);
        op->setOperand(index, widened(narrowConstant(weight, type)));
      }
    }
  }

  Value widened(Value narrow) {
    auto type = cast<RankedTensorType>(narrow.getType()).clone(builder.getF32Type());
    return top::CastOp::create(builder, narrow.getLoc(), type, narrow, TypeAttr::get(builder.getF32Type()));
  }

  Value narrowConstant(Value weight, Type type) {
    Value &known = constants[{weight, type}];
    if (known) {
      return known;
    }
    top::TensorData data = *top::getConstantData(weight);
    std::vector<char> bytes(data.bytes.size() / 2);
    auto *to = reinterpret_cast<uint16_t *>(bytes.data());
    for (float value : data.data<float>()) {
      *to++ = type.isBF16() ? top::roundToBf16(value) : top::roundToF16(value);
    }
    // Beside the f32 constant, so that all its readers come later.
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(weight.getDefiningOp());
    auto named = weight.getDefiningOp<top::WeightOp>();
    std::string hint = (named ? named.getKey().str() : "weight") + (type.isBF16() ? "_bf16" : "_f16");
    known = top::createConstant(builder, weight.getLoc(), data.type.clone(type), std::move(bytes), hint);
    return known;
  }

  /// Whether |value| is memory between two steps that one with a use for 16 bits reads, perhaps moved. What one
  /// elementwise op alone reads is not: that op becomes part of the step that makes it. Of several such operands, the
  /// last one made.
  bool isStored(Value value) {
    if (value.hasOneUse()) {
      Operation *user = *value.user_begin();
      auto fuses = [&](Value v) {
        return v.hasOneUse() && v.getDefiningOp() && takesEpilogue(v.getDefiningOp()) &&
               v.getType() == user->getResult(0).getType();
      };
      if (kindOf(user) == OpKind::elementwise && fuses(value) && llvm::none_of(user->getOperands(), [&](Value other) {
            return fuses(other) && order.lookup(other.getDefiningOp()) > order.lookup(value.getDefiningOp());
          })) {
        return false;
      }
    }
    return useful.contains(value);
  }

  /// Learns what is made of |op|'s results, moved or not; the readers of those that it moves are known.
  void noteReaders(Operation *op) {
    for (OpOperand &use : op->getUses()) {
      Operation *user = use.getOwner();
      if (isMove(user) ? exact.contains(user->getResult(0)) : use.getOperandNumber() == 0 && sumsFew(user)) {
        exact.insert(use.get());
      }
      if (!staysF32(user) && (isMove(user) ? useful.contains(user->getResult(0)) : readsNarrow(user))) {
        useful.insert(use.get());
      }
    }
  }

  /// Every reader of |value| that computes in 16 bits reads it rounded. Who asked for f32, or makes integers or the
  /// network's outputs of it, reads it as it is.
  void insertPair(Value value, Type type) {
    builder.setInsertionPointAfter(value.getDefiningOp());
    top::CastOp rounded = round(value, type);
    Operation *op = value.getDefiningOp();
    if (op->getNumResults() == 1 && !top::getTensorName(value).empty()) {
      rounded->setAttr(top::TopDialect::kOutputsAttr, op->removeAttr(top::TopDialect::kOutputsAttr));
    }
  }

  /// The cast to |type| of a new pair, at the insertion point.
  top::CastOp round(Value value, Type type) {
    auto wide = cast<RankedTensorType>(value.getType());
    auto rounded = top::CastOp::create(builder, value.getLoc(), wide.clone(type), value, TypeAttr::get(type));
    Value back = widened(rounded);
    value.replaceUsesWithIf(back, [&](OpOperand &use) {
      Operation *user = use.getOwner();
      return user != rounded && !user->hasTrait<OpTrait::IsTerminator>() && !isa<top::QuantizeOp>(user) &&
             !staysF32(user);
    });
    return rounded;
  }

  func::FuncOp function;
  const CalibrationTable &table;
  const Decisions &decisions;
  Precision precision;
  OpBuilder builder;
  SmallVector<Operation *> ops;
  llvm::DenseMap<Operation *, unsigned> order;
  llvm::DenseMap<Operation *, Type> types;
  llvm::DenseSet<Value> exact;  ///< read by sums of few products, for which 16 bits are too coarse
  llvm::DenseSet<Value> useful; ///< read by what computes on 16 bits
  llvm::DenseMap<std::pair<Value, Type>, Value> constants;
  NarrowFloats result;
};

} // namespace

NarrowFloats narrowFloats(func::FuncOp function, const CalibrationTable &table, const Decisions &decisions,
                          Precision precision) {
  return Narrower(function, table, decisions, precision).run();
}

} // namespace tessera::quant
