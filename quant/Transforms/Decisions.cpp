//===- Decisions.cpp - Which tensors become integers, and in which range ---===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Decisions.h"

#include "quant/Transforms/OpKinds.h"
#include "quant/Transforms/StorageTypes.h"
#include "quant/Transforms/TableNames.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopOps.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;

namespace tessera::quant {
namespace {

/// Attention stays float if 8 bits in q, k and v change the outputs by more than this share: it does not support 16
/// bits. The squares of the three separately measured errors are added.
constexpr double kMostOfAttention = 0.05;

/// The least magnitude of a tensor that becomes integers. With smaller scales, products of scales would be subnormal
/// and lose bits.
constexpr float kLeastMagnitude = 1e-25f;

/// Checks that the magnitude is too small for integers. A tensor of zeros is not: every scale represents it exactly.
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
    assignStorageTypes({function, ops, choices.standard, !table.weightsPath().empty(), table.decidesTypes, quantized,
                        kindOf, choiceOf, rangeOf, nameOf},
                       decisions);
    return std::move(decisions);
  }

private:
  //--- Collect ops and names ---

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

  //--- Classify the ops, in program order ---

  void classify(Operation *op) {
    OpKind kind = kindOf(op);
    std::string against;
    const Choice *choice = pinned.lookup(op);
    Precision wanted = choice ? choice->precision : precision;
    if (wanted != Precision::INT8 && wanted != Precision::INT16) {
      against = choice ? ("the quantise table says " + toString(wanted)).str() +
                             (choice->reason.empty() ? "" : ": " + choice->reason)
                       : (toString(wanted) + " is the precision of ops that the quantise table does not list").str();
    } else if (kind == OpKind::contraction && multipliesActivations(op) &&
               !(choice && choice->precision == Precision::INT8)) {
      against = "neither of its operands is a constant (an INT8 line in a quantise table makes it run on integers)";
    } else if (kind == OpKind::attention && wanted == Precision::INT16) {
      against = "attention supports 8-bit integers only, but INT16 was requested";
    } else if (kind == OpKind::other) {
      against = op->getName().getStringRef().str() + " has no integer form";
    } else if (std::optional<std::string> reason = isContraction(kind) ? reasonAgainst(op) : std::nullopt) {
      against = *reason;
    } else if (Value lost = rangelessOperand(op, kind)) {
      against = lacking(lost);
    } else if (double error = kind == OpKind::attention && !choice ? errorOfAttention(op) : 0;
               error > kMostOfAttention) {
      against = llvm::formatv("q, k and v in int8 would change the outputs by {0:P1}; at most {1:P0} is allowed", error,
                              kMostOfAttention);
    } else if (isPieceWithFinerStep(op)) {
      against =
          "its values are much smaller than the rest of the tensor that it is sliced from, so it gets its own range";
    }
    kind = kind == OpKind::contraction && multipliesActivations(op) ? OpKind::pairwise : kind;
    kinds[op] = against.empty() ? kind : OpKind::other;
    reasons[op] = against;
  }

  static bool isContraction(OpKind kind) { return kind == OpKind::contraction || kind == OpKind::attention; }

  /// Returns the measured effect of 8 bits in q, k and v on the outputs. The measurement may belong to a tensor from
  /// which an operand is moved.
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

  /// Returns the first operand, or the result, that needs a range but does not have one; null if there is none. Moving
  /// ops need the ranges of their operands, as input and result share the parameters.
  Value rangelessOperand(Operation *op, OpKind kind) {
    bool two = kind == OpKind::contraction && multipliesActivations(op);
    unsigned count = kind == OpKind::attention                             ? 3
                     : two                                                 ? 2
                     : kind == OpKind::contraction || kind == OpKind::move ? 1
                     : kind == OpKind::concat                              ? op->getNumOperands()
                                                                           : 0;
    for (Value operand : op->getOperands().take_front(count)) {
      if (!hasRange(operand)) {
        return operand;
      }
    }
    bool sums = isContraction(kind) && isTooSmall(table.find(names.lookup(op->getResult(0))));
    return sums ? op->getResult(0) : Value();
  }

  /// Checks that `op` slices a part with a much smaller range from a float tensor. For example, unrelated states of a
  /// recurrent network may be packed into one tensor.
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

  /// Explains why `v` has no range.
  std::string lacking(Value v) const {
    const std::string name = "'" + names.lookup(v).str() + "'";
    const Range *range = table.find(names.lookup(v));
    if (!range) {
      return "tensor " + name + " has no line in the calibration table";
    }
    if (range->isFloat) {
      return "the calibration table says float32 for tensor " + name;
    }
    return llvm::formatv("the largest magnitude of tensor {0} is {1:e1}, integers need at least {2:e1}", name,
                         range->magnitude(), kLeastMagnitude);
  }

  //--- Choose the tensors that become integers, users before producers ---

  void visit(Operation *op) {
    OpKind kind = kinds.at(op);
    Value result = op->getNumResults() == 1 ? op->getResult(0) : Value();
    const Choice *choice = pinned.lookup(op);
    bool multiplies = kind == OpKind::contraction || kind == OpKind::pairwise || kind == OpKind::attention;
    bool asked = choice && kind != OpKind::other && (!multiplies || kind == OpKind::contraction) && hasRange(result) &&
                 (choice->precision == Precision::INT8 ||
                  (choice->precision == Precision::INT16 && kind != OpKind::contraction)); // for contractions, INT16
                                                                                           // concerns the operand
    for (Value each : op->getResults()) {                                                  // recurrent ops have several
                                                                                           // results
      if (isWanted(each) || (asked && each == result)) {
        quantized.insert(each);
      }
    }
    std::string &reason = reasons[op];
    if (reason.empty() && !multiplies && !quantized.contains(result) &&
        !(kind == OpKind::elementwise && isChained(result))) {
      reason = hasRange(result) ? "no op that reads it runs on integers" : lacking(result);
    }
    if (reason.empty()) {
      decisions.integers.insert(op);
      return;
    }
    if (!isa<top::DequantizeOp>(op) &&
        llvm::any_of(op->getResultTypes(), [](Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); })) {
      decisions.kept.insert({op, reason});
    }
    if (choice || kindOf(op) == OpKind::contraction) {
      decisions.readsFloat.insert(op);
    }
  }

  /// Rejects INT8 and INT16 lines without any effect: the user would expect one.
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
                                     (reason.empty() ? "it is a constant, or is inside a loop or a branch" : reason));
    }
    return llvm::Error::success();
  }

  bool isInteger(Operation *op) const { return decisions.integers.contains(op); }

  /// Checks that `v` should become i8 or i16. Its users must have been visited.
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
      case OpKind::contraction:
        return use.getOperandNumber() == 0;
      case OpKind::pairwise:
        return true;
      case OpKind::attention:
        return use.getOperandNumber() < 3;
      case OpKind::elementwise:
        // If only elementwise ops want integers, keep a value in float that exists in float anyway: the result of a
        // float op or of attention, or a value that another op reads in float.
        return kindAt(originOf(v)) != OpKind::other && kindAt(originOf(v)) != OpKind::attention && !isReadAsFloat(v) &&
               !fusesInto(v, user);
      default:
        return true;
      }
    });
  }

  /// Returns the value whose elements `v` contains after skipping ops that only move data.
  Value originOf(Value v) const {
    while (kindAt(v) == OpKind::move) {
      v = v.getDefiningOp()->getOperand(0);
    }
    return v;
  }

  /// Checks that a float op or the caller reads `v`, whose users must have been visited. Rounding a recurrent state
  /// before it is returned would suppress all updates smaller than half a step.
  bool isReadAsFloat(Value v) const {
    return llvm::any_of(v.getUsers(), [&](Operation *user) { return !isInteger(user); });
  }

  /// Checks that `user` is fused into the op that computes `v`, so that `v` is never stored. If several operands
  /// qualify, the op that comes last is chosen, because the other operands exist by then.
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
    return (kind == OpKind::contraction || kind == OpKind::pairwise || kind == OpKind::elementwise) && v.hasOneUse() &&
           v.getType() == user->getResult(0).getType();
  }

  /// Checks that an elementwise op on integers fuses with the op that computes `v`.
  bool isChained(Value v) {
    return llvm::any_of(v.getUsers(), [&](Operation *user) {
      return isInteger(user) && kinds.at(user) == OpKind::elementwise && fusesInto(v, user);
    });
  }

  func::FuncOp function;
  const CalibrationTable &table;
  const QuantizeTable &choices;
  Precision precision;
  SmallVector<Operation *> ops; ///< top-level ops except constants, in program order
  llvm::DenseMap<Operation *, unsigned> order;
  llvm::DenseMap<Value, StringRef> names;
  llvm::MapVector<Operation *, const Choice *> pinned;
  llvm::DenseMap<Operation *, OpKind> kinds;        ///< `other` also for ops that a table, or a missing entry, excludes
  llvm::DenseMap<Operation *, std::string> reasons; ///< why an op stays float; empty if it does not
  llvm::DenseSet<Value> quantized;
  Decisions decisions;
};

} // namespace

llvm::Expected<Decisions> decide(func::FuncOp function, const CalibrationTable &table, const QuantizeTable &choices,
                                 Precision precision) {
  return Decider(function, table, choices, precision).run();
}

} // namespace tessera::quant
