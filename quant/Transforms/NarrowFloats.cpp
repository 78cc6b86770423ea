//===- NarrowFloats.cpp - Weights and activations in 16-bit floats --------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/NarrowFloats.h"

#include "quant/Transforms/Precision/OpKinds.h"
#include "quant/Transforms/Precision/PrecisionRules.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/NarrowFloats.h"
#include "top_dialect/IR/TensorNames.h"
#include "top_dialect/IR/TopOps.h"

using namespace mlir;

namespace tessera::quant {
namespace {

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

/// Checks that |op| reads f32 but may hold its result in 16 bits, because it sums few products (sumsFew).
bool readsF32(Operation *op) {
  return op->hasAttr(kStoresAttr) && op->hasAttr(kPrecisionAttr) && precisionOf(op) == Precision::F32 &&
         sumsFew(op, requestedOf(op));
}

/// Checks that |op| reads values that are not rounded to 16 bits: f32 was requested, or 16 bits are too few.
bool staysF32(Operation *op) {
  const bool isAssigned = op->hasAttr(kPrecisionAttr);
  if (isAssigned && ((precisionOf(op) != Precision::F32 && !isQuantizedByModel(op)) || readsF32(op))) {
    return false;
  }
  return requestedOf(op) == Precision::F32 ? isRequested(op)
                                           : isAssigned && isNarrow(requestedOf(op)) && isNarrowable(op);
}

class Narrower {
public:
  Narrower(func::FuncOp function, const Decisions &decisions)
      : function(function), decisions(decisions), builder(function.getContext()) {
    for (Operation &op : function.getBody().front().without_terminator()) {
      ops.push_back(&op);
    }
  }

  llvm::DenseSet<Operation *> run() {
    for (Operation *op : ops) {
      if (Type type = typeOf(op)) {
        types[op] = type;
      }
      if (types.contains(op) || readsF32(op)) {
        narrow.insert(op);
      }
    }
    llvm::for_each(llvm::reverse(ops), [&](Operation *op) { noteReaders(op); });
    for (Operation *op : ops) {
      if (Type type = types.lookup(op)) {
        if (!readsF32(op)) {
          narrowWeights(op, type);
        }
        for (Value value : op->getResults()) {
          if (isF32(value) && isStored(value) && !isPartOfConstant(value) && !exact.contains(value) &&
              storedAs(value) != Precision::F32) {
            insertPair(value, type);
          }
        }
      }
    }
    for (BlockArgument input : function.getArguments()) {
      // f16 might overflow.
      if (Type type = typeOfReaders(input); type && type.isBF16() && storedAs(input) != Precision::F32) {
        builder.setInsertionPointToStart(&function.getBody().front());
        round(input, type);
      }
    }
    return std::move(narrow);
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
      if (!first || !own || (type && own != type) || readsF32(user)) {
        return {};
      }
      type = own;
    }
    return isF32(input) ? type : Type();
  }

  /// Returns the 16-bit type that |op|'s results are held in, or null.
  Type typeOf(Operation *op) {
    if (decisions.integers.contains(op) || !isNarrowable(op)) {
      return {};
    }
    Precision precision = precisionOf(op);
    if (readsF32(op)) { // other readers may want the result in i16
      std::optional<Precision> stored = storedAs(op->getResult(0));
      precision = stored == Precision::INT16 ? requestedOf(op) : stored.value_or(Precision::F32);
    }
    switch (precision) {
    case Precision::BF16:
      return builder.getBF16Type();
    case Precision::F16:
      return builder.getF16Type();
    default:
      return {};
    }
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

  /// Returns true for a part of a constant. If its size were fixed, it would be a constant of its own.
  static bool isPartOfConstant(Value value) {
    Operation *op = value.getDefiningOp();
    return op &&
           (top::isConstant(value) || (isa<top::SliceOp, top::ReshapeOp>(op) && isPartOfConstant(op->getOperand(0))));
  }

  /// Checks that |value| is stored in memory and, possibly after moves, read by an op that benefits from 16 bits. A
  /// value with a single elementwise reader is not stored if that op is fused into its producer.
  bool isStored(Value value) {
    Operation *user = value.hasOneUse() ? *value.user_begin() : nullptr;
    bool fuses = user && kindOf(user) == OpKind::elementwise && fusesInto(value, user, takesEpilogue);
    return !fuses && useful.contains(value);
  }

  /// Records which of |op|'s results need f32 and which benefit from 16 bits. Readers of moved results are already
  /// known.
  void noteReaders(Operation *op) {
    for (OpOperand &use : op->getUses()) {
      Operation *user = use.getOwner();
      if (isMove(user) ? exact.contains(user->getResult(0)) : use.getOperandNumber() == 0 && readsF32(user)) {
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
  const Decisions &decisions;
  OpBuilder builder;
  SmallVector<Operation *> ops;
  llvm::DenseMap<Operation *, Type> types;
  llvm::DenseSet<Value> exact;  ///< read by short reductions, for which 16 bits are too coarse
  llvm::DenseSet<Value> useful; ///< read by ops that compute on 16 bits
  llvm::DenseMap<std::pair<Value, Type>, Value> constants;
  llvm::DenseSet<Operation *> narrow;
};

} // namespace

llvm::DenseSet<Operation *> narrowFloats(func::FuncOp function, const Decisions &decisions) {
  return Narrower(function, decisions).run();
}

} // namespace tessera::quant
