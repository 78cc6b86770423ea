//===- Decisions.cpp - Which tensors become integers, and in which range ---===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Decisions.h"

#include "quant/Transforms/Forms.h"
#include "quant/Transforms/OpKinds.h"
#include "quant/Transforms/TableNames.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopOps.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;

namespace tessera::quant {
namespace {

/// Attention whose q, k and v in 8 bits alone, each by itself, change the outputs by more than this share stays float:
/// there is no wider form. Squares of the three add up.
constexpr double kMostOfAttention = 0.05;

/// The magnitude that a tensor of integers must reach. The products of smaller scales would be subnormal, and lose
/// bits.
constexpr float kLeastMagnitude = 1e-25f;

/// Zeros alone are exact in any scale.
bool isTooSmall(const Range *range) { return range && range->magnitude() > 0 && range->magnitude() < kLeastMagnitude; }

class Decider {
public:
  Decider(func::FuncOp function, const CalibrationTable &table, const QuantizeTable &choices, Precision precision)
      : function(function), table(table), choices(choices), precision(precision) {}

  llvm::Expected<Decisions> run() {
    collect();
    llvm::for_each(ops, [&](Operation *op) { classify(op); });
    llvm::for_each(llvm::reverse(ops), [&](Operation *op) { visit(op); });
    for (BlockArgument argument : function.getArguments()) {
      if (isWanted(argument)) {
        quantized.insert(argument);
      }
    }
    if (llvm::Error error = checkAsked()) {
      return error;
    }
    auto kindOf = [&](Operation *op) { return kinds.lookup_or(op, OpKind::other); };
    auto choiceOf = [&](Operation *op) { return pinned.lookup(op); };
    auto rangeOf = [&](Value v) { return table.find(names.lookup(v)); };
    auto nameOf = [&](Value v) { return names.lookup(v); };
    assignForms(
        {function, ops, choices.standard, !table.weightsPath().empty(), quantized, kindOf, choiceOf, rangeOf, nameOf},
        decisions);
    return std::move(decisions);
  }

private:
  //--- What there is ---

  void collect() {
    for (BlockArgument argument : function.getArguments()) {
      names[argument] = top::getInputName(argument);
    }
    for (Operation &op : function.getBody().front().without_terminator()) {
      if (isa<top::TopDialect>(op.getDialect()) && !top::isConstant(op.getResult(0))) {
        ops.push_back(&op);
        order[&op] = ops.size();
      }
    }
    function.walk([&](Operation *op) {
      for (Value result : op->getResults()) {
        names[result] = top::getTensorName(result);
      }
    });
    TableNames index(function);
    for (const Choice &choice : choices.choices) {
      for (Operation *op : index.ops.lookup(choice.name)) {
        pinned[op] = &choice;
        decisions.asked[op] = &choice;
      }
    }
  }

  //--- What each op can do, in program order ---

  void classify(Operation *op) {
    OpKind kind = kindOf(op);
    std::string against;
    const Choice *choice = pinned.lookup(op);
    Precision wanted = choice ? choice->precision : precision;
    if (wanted != Precision::INT8 && wanted != Precision::INT16) {
      against = choice ? ("the quantise table says " + toString(wanted)).str() +
                             (choice->reason.empty() ? "" : ": " + choice->reason)
                       : (toString(wanted) + " where the quantise table says nothing else").str();
    } else if (kind == OpKind::product && multipliesActivations(op) &&
               !(choice && choice->precision == Precision::INT8)) {
      against = "both of its operands are computed (an INT8 line of a quantise table makes them integers)";
    } else if (kind == OpKind::attention && wanted == Precision::INT16) {
      against = "attention multiplies integers of 8 bits, and INT16 is asked for";
    } else if (kind == OpKind::other) {
      against = op->getName().getStringRef().str() + " has no integer form";
    } else if (std::optional<std::string> reason = isContraction(kind) ? reasonAgainst(op) : std::nullopt) {
      against = *reason;
    } else if (Value lost = rangelessOperand(op, kind)) {
      against = lacking(lost);
    } else if (double error = kind == OpKind::attention && !choice ? errorOfAttention(op) : 0;
               error > kMostOfAttention) {
      against = llvm::formatv("q, k and v in int8 would change the outputs by {0:P1}, allowed are {1:P0}", error,
                              kMostOfAttention);
    } else if (isPieceWithFinerStep(op)) {
      against = "its values are much smaller than others of what it is cut from, and get a range of their own";
    }
    kind = kind == OpKind::product && multipliesActivations(op) ? OpKind::pairwise : kind;
    kinds[op] = against.empty() ? kind : OpKind::other;
    reasons[op] = against;
  }

  static bool isContraction(OpKind kind) { return kind == OpKind::product || kind == OpKind::attention; }

  /// What 8 bits of q, k and v do to the outputs, as was measured of them or of what they are moved from.
  double errorOfAttention(Operation *op) const {
    double squares = 0;
    for (Value operand : op->getOperands().take_front(3)) {
      double most = 0;
      for (Value v = operand; v; v = kindAt(v) == OpKind::move ? v.getDefiningOp()->getOperand(0) : Value()) {
        const Range *range = table.find(names.lookup(v));
        most = std::max(most, range ? range->error.value_or(0) : 0);
      }
      squares += most * most;
    }
    return std::sqrt(squares);
  }

  /// A product reads integers; what has the same parameters on both sides needs those of what it moves.
  Value rangelessOperand(Operation *op, OpKind kind) {
    bool two = kind == OpKind::product && multipliesActivations(op);
    unsigned count = kind == OpKind::attention                         ? 3
                     : two                                             ? 2
                     : kind == OpKind::product || kind == OpKind::move ? 1
                     : kind == OpKind::concat                          ? op->getNumOperands()
                                                                       : 0;
    for (Value operand : op->getOperands().take_front(count)) {
      if (!hasRange(operand)) {
        return operand;
      }
    }
    bool sums = isContraction(kind) && isTooSmall(table.find(names.lookup(op->getResult(0))));
    return sums ? op->getResult(0) : Value();
  }

  /// States of a recurrent network and the like come as one float tensor whose parts have nothing in common.
  bool isPieceWithFinerStep(Operation *op) {
    if (!isa<top::SliceOp>(op) || kindAt(op->getOperand(0)) != OpKind::other) {
      return false;
    }
    const Range *whole = table.find(names.lookup(op->getOperand(0))),
                *piece = table.find(names.lookup(op->getResult(0)));
    return whole && piece && piece->magnitude() < whole->magnitude() / 2;
  }

  bool hasRange(Value v) {
    OpKind kind = kindAt(v);
    const Range *range = table.find(names.lookup(v));
    if (range && range->isFloat) {
      return false;
    }
    return kind == OpKind::move || kind == OpKind::concat || (range && !isTooSmall(range));
  }

  OpKind kindAt(Value v) const {
    Operation *op = v.getDefiningOp();
    return op ? kinds.lookup_or(op, OpKind::other) : OpKind::other;
  }

  /// Why `v` has no range.
  std::string lacking(Value v) const {
    const std::string name = "'" + names.lookup(v).str() + "'";
    const Range *range = table.find(names.lookup(v));
    if (!range) {
      return "tensor " + name + " has no line in the calibration table";
    }
    if (range->isFloat) {
      return "the calibration table says float32 for tensor " + name;
    }
    return llvm::formatv("tensor {0} reaches {1:e1}, integers need at least {2:e1}", name, range->magnitude(),
                         kLeastMagnitude);
  }

  //--- Who wants integers, users before producers ---

  void visit(Operation *op) {
    OpKind kind = kinds.at(op);
    Value result = op->getNumResults() == 1 ? op->getResult(0) : Value();
    const Choice *choice = pinned.lookup(op);
    bool multiplies = kind == OpKind::product || kind == OpKind::pairwise || kind == OpKind::attention;
    bool asked = choice && kind != OpKind::other && (!multiplies || kind == OpKind::product) && hasRange(result) &&
                 (choice->precision == Precision::INT8 ||
                  (choice->precision == Precision::INT16 && kind != OpKind::product)); // which is about its operand
    for (Value each : op->getResults()) {                                              // a recurrent op has several
      if (isWanted(each) || (asked && each == result)) {
        quantized.insert(each);
      }
    }
    std::string &reason = reasons[op];
    if (reason.empty() && !multiplies && !quantized.contains(result) &&
        !(kind == OpKind::elementwise && isChained(result))) {
      reason = hasRange(result) ? "nothing that runs on integers reads it" : lacking(result);
    }
    if (reason.empty()) {
      decisions.integers.insert(op);
      return;
    }
    if (!isa<top::DequantizeOp>(op) &&
        llvm::any_of(op->getResultTypes(), [](Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); })) {
      decisions.kept.insert({op, reason});
    }
    if (choice || kindOf(op) == OpKind::product) {
      decisions.readsFloat.insert(op);
    }
  }

  /// INT8 and INT16 lines that lead to nothing are errors: the user would believe otherwise.
  llvm::Error checkAsked() {
    for (const Choice &choice : choices.choices) {
      SmallVector<Operation *> named;
      for (auto [op, line] : pinned) {
        if (line == &choice) {
          named.push_back(op);
        }
      }
      bool integers = choice.precision == Precision::INT8 || choice.precision == Precision::INT16;
      if (named.empty() || !integers || llvm::any_of(named, [&](Operation *op) { return isInteger(op); })) {
        continue;
      }
      std::string reason = reasons.lookup(named.front());
      return llvm::createStringError("'" + choices.path + "': '" + choice.name + "' cannot be " +
                                     toString(choice.precision) + ": " +
                                     (reason.empty() ? "it is a constant, or inside of a loop or branch" : reason));
    }
    return llvm::Error::success();
  }

  bool isInteger(Operation *op) const { return decisions.integers.contains(op); }

  /// Whether `v` should be i8; its users are decided.
  bool isWanted(Value v) {
    auto type = dyn_cast<RankedTensorType>(v.getType());
    if (!type || !type.getElementType().isF32() || top::isConstant(v) || !hasRange(v)) {
      return false;
    }
    return llvm::any_of(v.getUses(), [&](OpOperand &use) {
      Operation *user = use.getOwner();
      if (!isInteger(user)) {
        return false;
      }
      switch (kinds.at(user)) {
      case OpKind::product:
        return use.getOperandNumber() == 0;
      case OpKind::pairwise:
        return true;
      case OpKind::attention:
        return use.getOperandNumber() < 3;
      case OpKind::elementwise:
        // What softmax and the like make, or what is there in float for others, stays float if only such an op asks.
        return kindAt(originOf(v)) != OpKind::other && kindAt(originOf(v)) != OpKind::attention && !isReadAsFloat(v) &&
               !fusesInto(v, user);
      default:
        return true;
      }
    });
  }

  /// What ops that only move have in their places.
  Value originOf(Value v) const {
    while (kindAt(v) == OpKind::move) {
      v = v.getDefiningOp()->getOperand(0);
    }
    return v;
  }

  /// Whether an op without integers, or the caller, reads `v`; its users are decided. A recurrent network's state that
  /// is rounded before it is handed out never grows by less than half a step.
  bool isReadAsFloat(Value v) const {
    return llvm::any_of(v.getUsers(), [&](Operation *user) { return !isInteger(user); });
  }

  /// Whether `user` becomes part of the step that makes `v`, so that `v` is never stored. Of several such operands that
  /// is the last one made: the others must be there already.
  bool fusesInto(Value v, Operation *user) {
    if (!isFusable(v, user)) {
      return false;
    }
    return llvm::none_of(user->getOperands(), [&](Value other) {
      return other != v && isFusable(other, user) &&
             order.lookup(other.getDefiningOp()) > order.lookup(v.getDefiningOp());
    });
  }

  bool isFusable(Value v, Operation *user) {
    OpKind kind = kindAt(v);
    return (kind == OpKind::product || kind == OpKind::pairwise || kind == OpKind::elementwise) && v.hasOneUse() &&
           v.getType() == user->getResult(0).getType();
  }

  /// Whether an elementwise op that runs for the integers of a later one reads `v` as part of its step.
  bool isChained(Value v) {
    return llvm::any_of(v.getUsers(), [&](Operation *user) {
      return isInteger(user) && kinds.at(user) == OpKind::elementwise && fusesInto(v, user);
    });
  }

  func::FuncOp function;
  const CalibrationTable &table;
  const QuantizeTable &choices;
  Precision precision;
  SmallVector<Operation *> ops; ///< top level, without constants, in program order
  llvm::DenseMap<Operation *, unsigned> order;
  llvm::DenseMap<Value, StringRef> names;
  llvm::MapVector<Operation *, const Choice *> pinned;
  llvm::DenseMap<Operation *, OpKind> kinds;        ///< `other` also where a table or a missing line forbids it
  llvm::DenseMap<Operation *, std::string> reasons; ///< why an op stays float, empty if it does not
  llvm::DenseSet<Value> quantized;
  Decisions decisions;
};

} // namespace

llvm::Expected<Decisions> decide(func::FuncOp function, const CalibrationTable &table, const QuantizeTable &choices,
                                 Precision precision) {
  return Decider(function, table, choices, precision).run();
}

} // namespace tessera::quant
