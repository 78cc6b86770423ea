//===- Decisions.cpp - Which tensors become integers, and in which range ---===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Precision/Decisions.h"

#include "quant/Transforms/Precision/OpKinds.h"
#include "quant/Transforms/Precision/PrecisionRules.h"
#include "quant/Transforms/Precision/StorageTypes.h"
#include "quant/Transforms/Tables/TableNames.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/State.h"
#include "top_dialect/IR/TopOps.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <deque>

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

llvm::Error rejection(Operation *op, Precision precision, StringRef reason) {
  return llvm::createStringError("'" + displayName(op) + "' (" + op->getName().getStringRef() + ") cannot be " +
                                 toString(precision) + ": " + reason);
}

/// Finds the ops that run on integers and the tensors that become integers.
class Decider {
public:
  /// `choices`: null if the precisions are assigned already.
  Decider(func::FuncOp function, const CalibrationTable &table, const QuantizeTable *choices, Precision precision)
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
    if (llvm::Error error = choices ? checkAsked() : checkIntegers()) {
      return error;
    }
    auto kindOf = [&](Operation *op) { return kinds.lookup_or(op, OpKind::other); };
    auto choiceOf = [&](Operation *op) { return pinned.lookup(op); };
    auto rangeOf = [&](Value v) { return table.find(names.lookup(v)); };
    auto nameOf = [&](Value v) { return names.lookup(v); };
    assignStorageTypes({function, ops, precision, !choices, !table.weightsPath().empty(), table.decidesTypes, quantized,
                        kindOf, choiceOf, rangeOf, nameOf},
                       decisions);
    if (llvm::Error error = choices ? llvm::Error::success() : checkWidths()) {
      return error;
    }
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
      }
    }
    function.walk([&](Operation *op) {
      for (Value result : op->getResults()) {
        names[result] = top::getTensorName(result);
      }
    });
    if (!choices) {
      function.walk([&](Operation *op) {
        if (isRequested(op)) {
          pinned[op] = &read.emplace_back(Choice{displayName(op), requestedOf(op), ""});
        }
      });
      return;
    }
    TableNames index(function);
    for (const Choice &choice : choices->choices) {
      for (Operation *op : index.ops.lookup(choice.name)) {
        pinned[op] = &choice;
      }
    }
  }

  //--- Classify the ops, in program order ---

  void classify(Operation *op) {
    OpKind kind = kindOf(op);
    std::string against = choices ? reasonToStayFloat(op, kind) : assignedReason(op, kind);
    kind = kind == OpKind::contraction && multipliesActivations(op) ? OpKind::pairwise : kind;
    kinds[op] = against.empty() ? kind : OpKind::other;
    reasons[op] = against;
  }

  /// Returns why an op stays float; empty if it may become an integer op.
  std::string reasonToStayFloat(Operation *op, OpKind kind) {
    const Choice *choice = pinned.lookup(op);
    Precision wanted = choice ? choice->precision : precision;
    if (!quant::isInteger(wanted)) {
      return choice ? ("the quantise table says " + toString(wanted)).str() +
                          (choice->reason.empty() ? "" : ": " + choice->reason)
                    : (toString(wanted) + " is the precision of ops that the quantise table does not list").str();
    }
    if (kind == OpKind::contraction && multipliesActivations(op) && !(choice && choice->precision == Precision::INT8)) {
      return "neither of its operands is a constant (an INT8 line in a quantise table makes it run on integers)";
    }
    if (std::string reason = reasonAgainstIntegers(op, kind, wanted); !reason.empty()) {
      return reason;
    }
    if (double error = kind == OpKind::attention && !choice ? errorOfAttention(op) : 0; error > kMostOfAttention) {
      return llvm::formatv("q, k and v in int8 would change the outputs by {0:P1}; at most {1:P0} is allowed", error,
                           kMostOfAttention);
    }
    return isPieceWithFinerStep(op) ? "its values are much smaller than the rest of the tensor that it is sliced from, "
                                      "so it gets its own range"
                                    : "";
  }

  /// Returns why an op is not computed on integers by its attribute, or cannot be; empty if it is.
  std::string assignedReason(Operation *op, OpKind kind) {
    if (isAssignedIntegers(op)) {
      return reasonAgainstIntegers(op, kind, precisionOf(op));
    }
    return reasonOf(op);
  }

  static bool isAssignedIntegers(Operation *op) {
    return op->hasAttr(kPrecisionAttr) && quant::isInteger(precisionOf(op)) && !isQuantizedByModel(op);
  }

  /// Returns why the op cannot run on integers; empty if it can.
  std::string reasonAgainstIntegers(Operation *op, OpKind kind, Precision wanted) {
    if (kind == OpKind::attention && wanted == Precision::INT16) {
      return "attention supports 8-bit integers only, but INT16 was requested";
    }
    if (kind == OpKind::other) {
      return op->getName().getStringRef().str() + " has no integer form";
    }
    if (top::appendsToState(op)) {
      return "it appends to a state, which keeps the type of the ONNX file";
    }
    if (std::optional<std::string> reason = isContraction(kind) ? reasonAgainst(op) : std::nullopt) {
      return *reason;
    }
    Value lost = rangelessOperand(op, kind);
    return lost ? lacking(lost) : "";
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
    for (const Choice &choice : choices->choices) {
      SmallVector<Operation *> named;
      for (auto [op, line] : pinned) {
        if (line == &choice) {
          named.push_back(op);
        }
      }
      if (named.empty() || !quant::isInteger(choice.precision) ||
          llvm::any_of(named, [&](Operation *op) { return isInteger(op); })) {
        continue;
      }
      std::string reason = reasons.lookup(named.front());
      return llvm::createStringError("'" + choices->path + "': '" + choice.name + "' cannot be " +
                                     toString(choice.precision) + ": " +
                                     (reason.empty() ? "it is a constant, or is inside a loop or a branch" : reason));
    }
    return llvm::Error::success();
  }

  /// Rejects INT8 and INT16 on ops that cannot run on integers.
  llvm::Error checkIntegers() {
    for (Operation *op : ops) {
      if (isAssignedIntegers(op) && !isInteger(op)) {
        return rejection(op, precisionOf(op), reasons.lookup(op));
      }
    }
    return llvm::Error::success();
  }

  /// Checks that the tensors with attributes of INT16 are i16, and that the ops of INT16 are those that read i16.
  llvm::Error checkWidths() {
    for (auto [value, name] : names) {
      auto form = decisions.tensors.find(value);
      if (storedAs(value) == Precision::INT16 && (form == decisions.tensors.end() || !form->second.isWide())) {
        return llvm::createStringError("tensor '" + name +
                                       "' cannot be stored in INT16: no integer op reads it in 16 bits");
      }
    }
    for (Operation *op : ops) {
      const bool isWide = decisions.wide.contains(op);
      if (isInteger(op) && isWide != (precisionOf(op) == Precision::INT16)) {
        return rejection(op, precisionOf(op),
                         isWide ? "one of its operands is stored in INT16"
                                : "none of its operands is stored in INT16 (top.stores)");
      }
    }
    for (auto &[op, reason] : decisions.wide) {
      reason = reasonOf(op);
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

  /// Checks that `user` is fused into the op that computes `v`, so that `v` is never stored.
  bool fusesInto(Value v, Operation *user) const {
    return quant::fusesInto(v, user, [&](Operation *producer) {
      OpKind kind = kinds.lookup_or(producer, OpKind::other);
      return kind == OpKind::contraction || kind == OpKind::pairwise || kind == OpKind::elementwise;
    });
  }

  /// Checks that an elementwise op on integers fuses with the op that computes `v`.
  bool isChained(Value v) {
    return llvm::any_of(v.getUsers(), [&](Operation *user) {
      return isInteger(user) && kinds.at(user) == OpKind::elementwise && fusesInto(v, user);
    });
  }

  func::FuncOp function;
  const CalibrationTable &table;
  const QuantizeTable *choices; ///< null if the precisions are assigned already
  Precision precision;
  std::deque<Choice> read;      ///< the precisions that attributes request
  SmallVector<Operation *> ops; ///< top-level ops except constants, in program order
  llvm::DenseMap<Value, StringRef> names;
  llvm::MapVector<Operation *, const Choice *> pinned;
  llvm::DenseMap<Operation *, OpKind> kinds;        ///< `other` also for ops that a table, or a missing entry, excludes
  llvm::DenseMap<Operation *, std::string> reasons; ///< why an op stays float; empty if it does not
  llvm::DenseSet<Value> quantized;
  Decisions decisions;
};

/// Rejects attributes that are not names of precisions. In a list, "" is allowed: the usual type.
llvm::Error checkNames(const Twine &owner, DictionaryAttr attributes) {
  for (StringRef name : {kPrecisionAttr, kRequestedAttr, kStoresAttr}) {
    Attribute value = attributes ? attributes.get(name) : Attribute();
    auto list = dyn_cast_or_null<ArrayAttr>(value);
    for (Attribute each : list ? list.getValue() : value ? ArrayRef(value) : ArrayRef<Attribute>()) {
      auto text = dyn_cast<StringAttr>(each);
      if (!text || !(parsePrecision(text.getValue()) || (list && text.empty()))) {
        return llvm::createStringError(owner + ": " + name + " is '" + (text ? text.getValue() : "not a string") +
                                       "'; allowed: " + precisionNames());
      }
    }
  }
  return llvm::Error::success();
}

llvm::Error checkFunction(func::FuncOp function) {
  if (!isAssigned(function)) {
    return llvm::createStringError("the ops of the function have no precisions: run assign-precision first");
  }
  llvm::Error error = checkNames("the function", function->getAttrDictionary());
  for (unsigned i = 0; !error && i < function.getNumArguments(); ++i) {
    error = checkNames("input '" + top::getInputName(function.getArgument(i)) + "'", function.getArgAttrDict(i));
  }
  return error;
}

/// Rejects an op without a precision, and a precision that it cannot have. INT8 and INT16 are checked later.
llvm::Error checkOp(Operation *op, const CalibrationTable &table) {
  const std::string name = ("'" + displayName(op) + "' (" + op->getName().getStringRef() + ")").str();
  const bool hasPrecision = op->hasAttr(kPrecisionAttr);
  if (needsPrecision(op) != hasPrecision) {
    return llvm::createStringError(
        name + (hasPrecision ? " has the attribute 'top.precision' but computes no floats"
                             : " has no attribute 'top.precision'; remove that of the function to have all precisions "
                               "assigned"));
  }
  if (llvm::Error error = checkNames(name, op->getAttrDictionary())) {
    return error;
  }
  std::string reason = hasPrecision ? reasonAgainst(op, precisionOf(op), table) : "";
  return reason.empty() ? llvm::Error::success() : rejection(op, precisionOf(op), reason);
}

} // namespace

llvm::Expected<Decisions> decide(func::FuncOp function, const CalibrationTable &table, const QuantizeTable &choices,
                                 Precision precision) {
  return Decider(function, table, &choices, precision).run();
}

llvm::Expected<Decisions> readDecisions(func::FuncOp function, const CalibrationTable &table) {
  if (llvm::Error error = checkFunction(function)) {
    return error;
  }
  for (Operation &op : function.getBody().front()) {
    if (llvm::Error error = checkOp(&op, table)) {
      return error;
    }
  }
  return Decider(function, table, nullptr, precisionOf(function)).run();
}

} // namespace tessera::quant
