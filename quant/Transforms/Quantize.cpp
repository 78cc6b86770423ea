//===- Quantize.cpp - Quantisation of a float Top function ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Quantize.h"

#include "quant/Transforms/Dynamic.h"
#include "quant/Transforms/NarrowFloats.h"
#include "quant/Transforms/Precision/Decisions.h"
#include "quant/Transforms/Precision/OpKinds.h"
#include "quant/Transforms/Precision/PrecisionAttributes.h"
#include "quant/Transforms/Weights/ResidualWeights.h"
#include "quant/Transforms/Weights/WeightOnly.h"
#include "quant/Transforms/Weights/Weights.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TensorNames.h"
#include "top_dialect/IR/TopOps.h"

using namespace mlir;

namespace tessera::quant {
namespace {

/// Inserts dequantize(quantize(v)) before all readers of `v` except those that `decisions` excludes. The integers take
/// over the name of the tensor.
top::QuantizeOp insertPair(OpBuilder &builder, Value v, const IntegerForm &form, const Decisions &decisions) {
  Location loc = v.getLoc();
  if (Operation *op = v.getDefiningOp()) {
    builder.setInsertionPointAfter(op);
  } else {
    builder.setInsertionPointToStart(v.getParentBlock());
  }
  auto type = cast<RankedTensorType>(v.getType());
  Type element = builder.getIntegerType(form.isWide() ? 16 : 8);
  Value scale = top::createScalar(builder, loc, builder.getF32Type(), form.scale);
  Value zeroPoint = top::createScalar(builder, loc, element, form.zeroPoint);
  auto q = top::QuantizeOp::create(builder, loc, type.clone(element), v, scale, zeroPoint, form.qmax);
  if (auto input = dyn_cast<BlockArgument>(v)) { // an input does not have a node: reports use the input's name
    q->setLoc(NameLoc::get(builder.getStringAttr(top::getInputName(input))));
  }
  auto dq = top::DequantizeOp::create(builder, loc, type, q, scale, zeroPoint, form.qmax);
  v.replaceUsesWithIf(dq, [&](OpOperand &use) {
    Operation *user = use.getOwner();
    bool passesInputOn = isa<BlockArgument>(v) && user->hasTrait<OpTrait::IsTerminator>();
    return user != q && !passesInputOn && !decisions.readsFloat.contains(user);
  });
  if (Operation *op = v.getDefiningOp(); op && op->getNumResults() == 1 && !top::getTensorName(v).empty()) {
    q->setAttr(top::TopDialect::kOutputsAttr, op->removeAttr(top::TopDialect::kOutputsAttr));
  }
  return q;
}

int64_t countElements(ValueRange values, bool constants) {
  int64_t count = 0;
  for (Value value : values) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (type && Shape(type).isDetermined() && top::isConstant(value) == constants) {
      count += likelyOf(countElements(Shape(type)));
    }
  }
  return count;
}

/// Returns a name by which tables can refer to the op: its first node name that no other op has, else the name of its
/// tensor.
std::string tableName(Operation *op, const llvm::StringMap<unsigned> &uses) {
  for (StringRef name : top::getNodeNames(op->getLoc())) {
    if (uses.lookup(name) == 1) {
      return name.str();
    }
  }
  return top::getTensorName(op->getResult(0)).str();
}

/// Lists the top-level ops with a float result that a table can name.
std::vector<DecidedOp> listOps(func::FuncOp function, const Decisions &decisions) {
  llvm::StringMap<unsigned> uses;
  function.walk([&](Operation *op) {
    for (StringRef name : top::getNodeNames(op->getLoc())) {
      ++uses[name];
    }
  });
  std::vector<DecidedOp> list;
  for (Operation &op : function.getBody().front()) {
    bool isInteger = decisions.integers.contains(&op);
    if (!isInteger && !decisions.kept.contains(&op)) {
      continue;
    }
    DecidedOp entry;
    entry.name = tableName(&op, uses);
    entry.op = op.getName().getStringRef().str();
    // An op that cannot have the requested precision is listed with it, except for INT8 and INT16.
    entry.precision = isInteger || quant::isInteger(requestedOf(&op)) ? precisionOf(&op) : requestedOf(&op);
    entry.precision = !isInteger && quant::isInteger(entry.precision) ? Precision::F32 : entry.precision;
    OpKind kind = kindOf(&op);
    entry.moves = kind == OpKind::move || kind == OpKind::concat;
    entry.macs = countMacs(&op);
    entry.weights = countElements(op.getOperands(), true);
    entry.reads = countElements(op.getOperands(), false);
    entry.writes = countElements(op.getResults(), false);
    if (!entry.name.empty()) {
      list.push_back(std::move(entry));
    }
  }
  return list;
}

/// Names of the ops before pairs take over the names of tensors.
using OpNames = llvm::DenseMap<Operation *, std::string>;

OpNames displayNames(func::FuncOp function) {
  OpNames names;
  for (Operation &op : function.getBody().front()) {
    names[&op] = displayName(&op);
  }
  return names;
}

/// Returns false for ops without weights if only weights were to become integers.
bool isReported(Operation *op) {
  const Precision wanted = requestedOf(op);
  bool onlyWeights = isOfWeights(wanted) || wanted == Precision::DYNAMIC_INT8;
  return !onlyWeights || isRequested(op) || isa<top::ConvOp, top::ConvTransposeOp, top::MatMulOp>(op);
}

void reportOn(func::FuncOp function, const OpNames &names, const Decisions &decisions,
              const llvm::DenseSet<Operation *> &narrow, const llvm::DenseSet<Operation *> &dynamic,
              QuantizeReport &report) {
  for (Operation &op : function.getBody().front()) {
    int64_t macs = countMacs(&op);
    report.macs += macs;
    const Precision precision = op.hasAttr(kPrecisionAttr) ? precisionOf(&op) : Precision::F32;
    if (decisions.integers.contains(&op)) {
      ++report.integerOps;
      report.integerMacs += macs;
      if (auto it = decisions.wide.find(&op); it != decisions.wide.end()) {
        report.wideMacs += macs;
        report.wide.push_back({names.lookup(&op), op.getName().getStringRef().str(), it->second, macs});
      }
    } else if (narrow.contains(&op)) {
      ++report.narrowOps;
      report.narrowMacs += macs;
    } else if (precision == Precision::W8 || precision == Precision::W4) {
      ++report.weightOps;
      report.weightMacs += macs;
    } else if (dynamic.contains(&op)) {
      ++report.integerOps;
      report.integerMacs += macs;
    } else if (auto it = decisions.kept.find(&op); it != decisions.kept.end() && isReported(&op)) {
      report.kept.push_back({names.lookup(&op), op.getName().getStringRef().str(), it->second, macs});
    }
  }
}

/// Returns the learned weights of a convolution or matmul, if there are any.
llvm::Expected<std::optional<LearnedWeight>> findLearned(const std::optional<LearnedWeights> &learned, Operation *op) {
  if (!learned) {
    return std::nullopt;
  }
  auto type = cast<RankedTensorType>(weightOf(op).operand->get().getType());
  return learned->find(top::getTensorName(op->getResult(0)), type, countChannels(op));
}

/// Adds to the bias of an op whose weights have two terms the part of the learned bias that remains valid for them.
llvm::Error addInputBias(OpBuilder &builder, const std::optional<LearnedWeights> &learned, Operation *op) {
  if (!learned) {
    return llvm::Error::success();
  }
  auto bias = learned->inputBias(top::getTensorName(op->getResult(0)), countChannels(op));
  if (bias && !bias->empty()) {
    builder.setInsertionPoint(op);
    addToBias(builder, op, *bias);
  }
  return bias.takeError();
}

/// Sets the number of levels that integer attention rounds its exponentials to.
void roundPowers(const Decisions &decisions) {
  for (Operation *op : decisions.integers) {
    if (auto attention = dyn_cast<top::AttentionOp>(op)) {
      attention.setLevels(kPowerLevels);
    }
  }
}

/// Convolutions and matmuls with the integer form of their input.
using Contractions = llvm::MapVector<Operation *, IntegerForm>;

/// Makes the weights of integer convolutions and matmuls i8, except weights that are to have two terms. Returns the ops
/// with such weights.
llvm::Expected<Contractions> roundWeights(func::FuncOp function, const CalibrationTable &table,
                                          const std::optional<LearnedWeights> &learned, const Decisions &decisions,
                                          QuantizeReport &report, llvm::function_ref<void(size_t, size_t)> progress) {
  OpBuilder builder(function.getContext());
  Contractions residualWeights;
  const size_t total = decisions.integers.empty() ? 0 : function.getBody().front().getOperations().size();
  size_t done = 0;
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
    if (total) {
      progress(std::min(++done, total), total);
    }
    if (!decisions.integers.contains(&op) || kindOf(&op) != OpKind::contraction || multipliesActivations(&op)) {
      continue;
    }
    const IntegerForm &form = decisions.tensors.find(op.getOperand(0))->second;
    if (hasResidualWeights(table.find(top::getTensorName(op.getResult(0))))) {
      residualWeights.insert({&op, form});
      if (llvm::Error error = addInputBias(builder, learned, &op)) {
        return std::move(error);
      }
      continue;
    }
    llvm::Expected<std::optional<LearnedWeight>> own = findLearned(learned, &op);
    if (!own) {
      return own.takeError();
    }
    report.learnedWeights += own->has_value();
    quantizeWeight(builder, &op, form.finestScale, *own);
  }
  return residualWeights;
}

/// Splits weights into two terms. The second contractions become integer ops in `decisions`.
void splitWeights(OpBuilder &builder, const Contractions &macs, Decisions &decisions, QuantizeReport &report) {
  for (const auto &[op, form] : macs) {
    if (Operation *second = splitWeight(builder, op, form)) {
      decisions.integers.insert(second);
      ++report.splitWeights;
      report.residualMacs += countMacs(second);
    }
  }
}

} // namespace

llvm::Expected<QuantizeReport> applyPrecision(func::FuncOp function, const CalibrationTable &table,
                                              const QuantizeOptions &options,
                                              const std::optional<LearnedWeights> &learned,
                                              llvm::function_ref<void(size_t, size_t)> progress) {
  llvm::Expected<Decisions> decisions = readDecisions(function, table);
  if (!decisions) {
    return decisions.takeError();
  }
  QuantizeReport report;
  report.factors = factorsOf(function);
  report.ops = listOps(function, *decisions);
  const OpNames names = displayNames(function);
  // Make integers first: their ranges were measured on tensors that are not rounded to 16-bit floats.
  OpBuilder builder(function.getContext());
  llvm::Expected<Contractions> residualWeights = roundWeights(function, table, learned, *decisions, report, progress);
  if (!residualWeights) {
    return residualWeights.takeError();
  }
  roundPowers(*decisions);
  for (auto &[value, form] : decisions->tensors) {
    top::QuantizeOp q = insertPair(builder, value, form, *decisions);
    if (StringRef name = top::getTensorName(q); !name.empty()) {
      report.tensors.push_back({name.str(), form.scale, form.zeroPoint});
    }
  }
  if (options.splitWeights) {
    splitWeights(builder, *residualWeights, *decisions, report);
  }
  llvm::DenseSet<Operation *> narrow = narrowFloats(function, *decisions);
  llvm::Expected<int64_t> adopted = quantizeWeightsOnly(function, options.groupSize, learned, progress);
  if (!adopted) {
    return adopted.takeError();
  }
  report.learnedWeights += *adopted;
  DynamicContractions dynamic = quantizeDynamically(function, options.groupSize);
  reportOn(function, names, *decisions, narrow, dynamic.ops, report);
  dropAssignment(function);
  return report;
}

} // namespace tessera::quant
