//===- AssignPrecision.cpp - Decides the precision of every op ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Precision/AssignPrecision.h"

#include "quant/Transforms/Precision/Decisions.h"
#include "quant/Transforms/Precision/OpKinds.h"
#include "quant/Transforms/Precision/PrecisionRules.h"
#include "quant/Transforms/Tables/TableNames.h"
#include "quant/Transforms/Weights/BlockMatMuls.h"
#include "quant/Transforms/Weights/WeightOnly.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopOps.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace tessera::quant {
namespace {

/// A result stays f32 if, by the table, 8 bits in it alone change the outputs by more than this share. bf16 has equally
/// few significant bits.
constexpr double kMostErrorOfBf16 = 0.05;

/// Applies the channel factors with which the table's weights were learned.
llvm::Expected<TensorFactors> equalize(func::FuncOp function, const std::optional<LearnedWeights> &learned) {
  if (!learned) {
    return TensorFactors();
  }
  ChannelFlow flow(function);
  OriginFactors origins;
  for (Value origin : flow.origins()) {
    StringRef name = top::getTensorName(origin);
    llvm::Expected<ArrayRef<float>> factors = learned->factors(name);
    if (!factors) {
      return factors.takeError();
    }
    if (!factors->empty()) {
      origins[name] = factors->vec();
    }
  }
  return origins.empty() ? TensorFactors() : applyFactors(function, flow, origins);
}

class PrecisionAssigner {
public:
  PrecisionAssigner(func::FuncOp function, const CalibrationTable &table, const QuantizeTable &choices,
                    const QuantizeOptions &options, const std::optional<LearnedWeights> &learned)
      : function(function), table(table), choices(choices), options(options), learned(learned),
        builder(function.getContext()) {}

  llvm::Error run() {
    llvm::Expected<Decisions> decided = decide(function, table, choices, options.precision);
    if (!decided) {
      return decided.takeError();
    }
    decisions = std::move(*decided);
    last = lastContractions(function);
    function->setAttr(kPrecisionAttr, builder.getStringAttr(toString(options.precision)));
    recordRequests();
    for (Operation &op : function.getBody().front()) {
      if (llvm::Error error = needsPrecision(&op) ? assign(&op) : llvm::Error::success()) {
        return error;
      }
    }
    recordStorage();
    return checkDynamic();
  }

private:
  void recordRequests() {
    TableNames index(function);
    for (const Choice &choice : choices.choices) {
      for (Operation *op : index.ops.lookup(choice.name)) {
        op->setAttr(kRequestedAttr, builder.getStringAttr(toString(choice.precision)));
      }
    }
  }

  void set(Operation *op, Precision precision, const Twine &reason) {
    op->setAttr(kPrecisionAttr, builder.getStringAttr(toString(precision)));
    op->setAttr(kReasonAttr, builder.getStringAttr(reason));
  }

  llvm::Error assign(Operation *op) {
    if (decisions.integers.contains(op)) {
      auto wide = decisions.wide.find(op);
      bool isWide = wide != decisions.wide.end();
      set(op, isWide ? Precision::INT16 : Precision::INT8,
          isWide ? wide->second : "the calibration table has the ranges of its tensors");
      return llvm::Error::success();
    }
    const Precision requested = requestedOf(op);
    const std::string reason = decisions.kept.lookup(op);
    // Ops whose inputs cannot be quantised by blocks have integer weights alone.
    const bool isAlone = quantizesBlocks(requested) && !reasonAgainst(op, requested, table).empty();
    const Precision wanted = !isAlone ? requested : requested == Precision::W8A8 ? Precision::W8 : Precision::W4;
    // W4 becomes W8 for ops that do not have groups.
    std::string against = reasonAgainst(op, wanted == Precision::W4 ? Precision::W8 : wanted, table);
    if (quant::isInteger(wanted) || isLeftAlone(op, wanted)) {
      assignFloat(op, reason);
    } else if (!against.empty()) {
      assignFloat(op, isExpected(op, wanted) ? against : reason);
    } else if (sumsFew(op, wanted)) {
      set(op, Precision::F32,
          llvm::formatv("{0} products are too few for {1}", reductionLength(op), toString(wanted)).str());
      setStoredAs(op->getResult(0), wanted);
    } else if (hasFourBits(wanted)) {
      return assignFourBits(op, wanted, reason);
    } else {
      assignFloat(op, reason, wanted);
    }
    return llvm::Error::success();
  }

  /// Assigns `precision`. An op that the model quantises is not F32.
  void assignFloat(Operation *op, StringRef reason, Precision precision = Precision::F32) {
    const bool isPlain = options.precision == Precision::F32 && !isRequested(op);
    if (precision == Precision::F32 && isQuantizedByModel(op)) {
      set(op, Precision::INT8, isPlain ? StringRef("the model quantises its operands") : reason);
    } else {
      set(op, precision, reason);
    }
  }

  /// Assigns `wanted`, W4 or W4A8, or its form with 8 bits.
  llvm::Error assignFourBits(Operation *op, Precision wanted, StringRef reason) {
    const Precision wide = wanted == Precision::W4A8 ? Precision::W8A8 : Precision::W8;
    if (hasBlockWeights(op)) {
      set(op, wanted, "its weights are integers already");
      return llvm::Error::success();
    }
    if (keepsEightBits(op, last.contains(op))) {
      set(op, wide, "4 bits would save little, or harm the outputs most");
      return llvm::Error::success();
    }
    llvm::Expected<bool> isWide =
        learned ? isLearnedInEightBits(op, options.groupSize, *learned) : llvm::Expected<bool>(false);
    if (isWide) {
      set(op, *isWide ? wide : wanted, *isWide ? StringRef("the calibration kept 8 bits") : reason);
    }
    return isWide.takeError();
  }

  /// Run-time quantisation of matmuls whose sizes are unknown must be requested.
  static bool isLeftAlone(Operation *op, Precision wanted) {
    return wanted == Precision::DYNAMIC_INT8 && !isRequested(op) && countMacs(op) == 0;
  }

  /// Returns true if users expect `wanted` of the op, so that the reason against it interests them.
  static bool isExpected(Operation *op, Precision wanted) {
    if (isNarrow(wanted)) {
      return isNarrowable(op);
    }
    return wanted == Precision::DYNAMIC_INT8 ? !isRequested(op) && countMacs(op) != 0
                                             : isa<top::ConvOp, top::ConvTransposeOp, top::MatMulOp>(op);
  }

  /// Marks the tensors that are not stored as their op's precision suggests.
  void recordStorage() {
    for (const auto &[value, form] : decisions.tensors) {
      if (form.isWide()) {
        setStoredAs(value, Precision::INT16);
      }
    }
    auto recordSensitive = [&](Value value) {
      const Range *range = table.find(top::getTensorName(value));
      if (range && range->error.value_or(0) > kMostErrorOfBf16 && !decisions.tensors.contains(value)) {
        setStoredAs(value, Precision::F32);
      }
    };
    for (Operation &op : function.getBody().front()) {
      bool isBf16 = op.hasAttr(kPrecisionAttr) && precisionOf(&op) == Precision::BF16;
      for (Value result : op.getResults()) {
        if (isBf16 || storedAs(result) == Precision::BF16) {
          recordSensitive(result);
        }
      }
      for (Value operand : isBf16 ? op.getOperands() : op.getOperands().take_front(0)) {
        if (isa<BlockArgument>(operand)) {
          recordSensitive(operand);
        }
      }
    }
  }

  /// Rejects DYNAMIC_INT8 lines of which no op can be quantised at run time.
  llvm::Error checkDynamic() {
    TableNames index(function);
    for (const Choice &choice : choices.choices) {
      auto ops = llvm::filter_to_vector(index.ops.lookup(choice.name),
                                        [&](Operation *op) { return op->getParentOp() == function; });
      if (choice.precision != Precision::DYNAMIC_INT8 || ops.empty() || llvm::any_of(ops, [](Operation *op) {
            return op->hasAttr(kPrecisionAttr) && precisionOf(op) == Precision::DYNAMIC_INT8;
          })) {
        continue;
      }
      return llvm::createStringError("'" + choices.path + "': '" + choice.name + "' cannot be " +
                                     toString(choice.precision) + ": " +
                                     reasonAgainst(ops.front(), choice.precision, table));
    }
    return llvm::Error::success();
  }

  func::FuncOp function;
  const CalibrationTable &table;
  const QuantizeTable &choices;
  const QuantizeOptions &options;
  const std::optional<LearnedWeights> &learned;
  Builder builder;
  Decisions decisions;
  llvm::DenseSet<Operation *> last; ///< contractions on which no other contraction depends
};

} // namespace

llvm::Error assignPrecision(func::FuncOp function, const CalibrationTable &table, const QuantizeTable &choices,
                            const QuantizeOptions &options, const std::optional<LearnedWeights> &learned) {
  if (isAssigned(function)) {
    if (precisionOf(function) != options.precision) {
      return llvm::createStringError(
          "the function's ops have precisions for " + toString(precisionOf(function)) + ", but " +
          toString(options.precision) +
          " was requested; remove its attribute 'top.precision' to have them assigned again");
    }
    return readDecisions(function, table).takeError();
  }
  llvm::Expected<TensorFactors> factors = equalize(function, learned);
  if (!factors) {
    return factors.takeError();
  }
  setFactors(function, *factors);
  if (!table.modelHash().empty()) {
    function->setAttr(kCalibratedAttr, StringAttr::get(function.getContext(), table.modelHash()));
  }
  return PrecisionAssigner(function, table, choices, options, learned).run();
}

} // namespace tessera::quant
