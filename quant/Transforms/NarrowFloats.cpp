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

/// Returns the length up to which a reduction counts as short. Rounding errors of few products hardly average out, and
/// such ops have few weights. f16's rounding errors are an eighth of bf16's.
int64_t fewProducts(Type type) { return type.isBF16() ? 63 : 32; }

/// Checks that |op| can compute on 16-bit operands. All other ops compute in f32 on f32 operands.
bool readsNarrow(Operation *op) {
  OpKind kind = kindOf(op);
  return kind == OpKind::contraction || kind == OpKind::elementwise || kind == OpKind::blend ||
         isa<top::LayerNormOp, top::ConvOp, top::ConvTransposeOp, top::MatMulOp>(op);
}

bool isMove(Operation *op) { return kindOf(op) == OpKind::move || kindOf(op) == OpKind::concat; }

/// Checks that an elementwise reader of |op|'s result can be fused into |op|.
bool takesEpilogue(Operation *op) {
  OpKind kind = kindOf(op);
  return kind == OpKind::contraction || kind == OpKind::elementwise || isa<top::AvgPoolOp, top::ReduceOp>(op);
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
      // f16 might overflow.
      if (Type type = typeOfReaders(input); type && type.isBF16() && !isSensitive(input)) {
        builder.setInsertionPointToStart(&function.getBody().front());
        round(input, type);
      }
    }
    return std::move(result);
  }

private:
  /// Returns the type to round the network's |input| to: that of its readers if they are all 16-bit convolutions, else
  /// null.
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

  /// Checks that |op| is a 16-bit convolution with a short reduction, such as a depthwise one. Matmuls are excluded:
  /// their weights make up most of their models' memory.
  bool sumsFew(Operation *op) {
    Type type = types.lookup(op);
    return type && kindOf(op) == OpKind::contraction && !isa<top::MatMulOp>(op) &&
           top::isConstant(weightOf(op).operand->get()) && reductionLength(op) <= fewProducts(type);
  }

  /// Returns the 16-bit type that |op|'s results are held in, or null.
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

  /// Returns why f16 cannot hold a constant or a result of |op|; empty if it can. Infinities are allowed.
  std::string beyondF16(Operation *op) {
    for (Value operand : op->getOperands()) {
      std::optional<top::TensorData> data = isF32(operand) ? top::getConstantData(operand) : std::nullopt;
      float largest = 0;
      for (float value : data ? data->data<float>() : ArrayRef<float>()) {
        largest = std::isfinite(value) ? std::max(largest, std::fabs(value)) : largest;
      }
      if (largest > kLargestF16) {
        return llvm::formatv("a constant reaches {0:e3}, the largest f16 is {1}", largest, int64_t(kLargestF16));
      }
    }
    for (Value value : op->getResults()) {
      const Range *range = table.find(top::getTensorName(value));
      if (float largest = range ? range->magnitude() : 0; largest > kLargestF16) {
        return llvm::formatv("its result reaches {0:e3}, the largest f16 is {1}", largest, int64_t(kLargestF16));
      }
    }
    return "";
  }

  /// Checks that, by the table, 8 bits in |value| alone change the outputs by more than kMostError. bf16 has equally
  /// few significant bits.
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
    // Insert the new constant right after the f32 one, so that it precedes all readers.
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(weight.getDefiningOp());
    auto named = weight.getDefiningOp<top::WeightOp>();
    std::string hint = (named ? named.getKey().str() : "weight") + (type.isBF16() ? "_bf16" : "_f16");
    known = top::createConstant(builder, weight.getLoc(), data.type.clone(type), std::move(bytes), hint);
    return known;
  }

  /// Checks that |value| is stored in memory and, possibly after moves, read by an op that benefits from 16 bits. A
  /// value with a single elementwise reader is not stored if that op is fused into its producer. If several operands of
  /// the reader qualify, it is fused into the last producer.
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

  /// Records which of |op|'s results need f32 and which benefit from 16 bits. Readers of moved results are already
  /// known.
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

  /// Makes all readers of |value| read it rounded, except ops that stay f32, quantize ops and the function's outputs.
  void insertPair(Value value, Type type) {
    builder.setInsertionPointAfter(value.getDefiningOp());
    top::CastOp rounded = round(value, type);
    Operation *op = value.getDefiningOp();
    if (op->getNumResults() == 1 && !top::getTensorName(value).empty()) {
      rounded->setAttr(top::TopDialect::kOutputsAttr, op->removeAttr(top::TopDialect::kOutputsAttr));
    }
  }

  /// Inserts a pair of casts at the insertion point and returns the cast to |type|.
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
  llvm::DenseSet<Value> exact;  ///< read by short reductions, for which 16 bits are too coarse
  llvm::DenseSet<Value> useful; ///< read by ops that compute on 16 bits
  llvm::DenseMap<std::pair<Value, Type>, Value> constants;
  NarrowFloats result;
};

} // namespace

NarrowFloats narrowFloats(func::FuncOp function, const CalibrationTable &table, const Decisions &decisions,
                          Precision precision) {
  return Narrower(function, table, decisions, precision).run();
}

} // namespace tessera::quant
