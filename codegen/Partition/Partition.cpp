//===- Partition.cpp - Splitting a device function into subnets -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Partition/Partition.h"

#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Addresses.h"
#include "device_dialect/Transforms/PadToBucket.h"
#include "device_dialect/Transforms/ScalarBodies.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopConstOps.h"
#include "top_dialect/IR/Unsupported.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace tessera::partition {
namespace {

bool isConstant(Operation *op) {
  return isa<top::WeightOp, top::ConstantOp>(op) ||
         (op->getNumResults() == 1 && isa<device::ReshapeOp>(op) && device::getConstantRoot(op->getResult(0)));
}

std::vector<Operation *> opsOf(func::FuncOp function) {
  std::vector<Operation *> ops;
  for (Operation &op : function.getBody().front().without_terminator()) {
    if (!isConstant(&op)) {
      ops.push_back(&op);
    }
  }
  return ops;
}

/// Finds the inputs and outputs of a subnet. Arguments and results of the function come first, in the function's order.
void findPorts(Subnet &subnet, func::FuncOp function) {
  DenseSet<Operation *> inside(subnet.ops.begin(), subnet.ops.end());
  DenseSet<Value> read, left;
  for (Operation *op : subnet.ops) {
    read.insert(op->operand_begin(), op->operand_end());
  }
  for (BlockArgument argument : function.getArguments()) {
    if (read.contains(argument)) {
      subnet.inputs.push_back(argument);
    }
  }
  for (Value returned : function.getBody().front().getTerminator()->getOperands()) {
    if (inside.contains(returned.getDefiningOp()) && left.insert(returned).second) {
      subnet.outputs.push_back(returned);
    }
  }
  DenseSet<Value> seen;
  for (Operation *op : subnet.ops) {
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (producer && !inside.contains(producer) && !isConstant(producer) && seen.insert(operand).second) {
        subnet.inputs.push_back(operand);
      }
    }
    for (Value result : op->getResults()) {
      if (!left.contains(result) &&
          llvm::any_of(result.getUsers(), [&](Operation *user) { return !inside.contains(user); })) {
        subnet.outputs.push_back(result);
      }
    }
  }
}

} // namespace

Partition::Partition(func::FuncOp function, Targets targets) : function(function), chips(targets) {
  surveyAll();
  if (splitEpilogues()) {
    surveyAll();
  }
}

/// Returns true if the op pads inputs, or cuts outputs, of a target that supports only fixed sizes.
static bool isPadding(Operation *op, const codegen::Target &target) {
  return device::hasOpenSizes(op) && !target.supportsSymbolicSizes() && !op->hasAttr(device::kUnpaddedAttr);
}

void Partition::surveyAll() {
  ops = opsOf(function);
  rejected.assign(chips.size(), Rejections());
  rejectsAll.assign(chips.size(), "");
  for (uint32_t target = 0; target < chips.size(); ++target) {
    survey(target);
  }
}

/// Copies the ops about which a target is asked: all of them, or those whose sizes are numbers if the target supports
/// only these. The target then rejects the others.
Outlined Partition::copyFor(uint32_t target) {
  Subnet asked;
  for (Operation *op : ops) {
    if (chips[target]->supportsSymbolicSizes() || !device::hasOpenSizes(op)) {
      asked.ops.push_back(op);
    } else {
      auto reason = op->getAttrOfType<StringAttr>(device::kUnpaddedAttr);
      reject(target, op, reason ? reason.str() : "prepares or returns data of sizes known at run time");
    }
  }
  if (asked.ops.size() == ops.size()) {
    auto results = llvm::to_vector(function.getBody().front().getTerminator()->getOperands());
    SmallVector<Value> arguments(function.getArguments().begin(), function.getArguments().end());
    return outline(function, ops, arguments, results);
  }
  findPorts(asked, function);
  return outline(function, asked.ops, asked.inputs, asked.outputs);
}

/// Surveys a copy, because a target may assign layouts and addresses that later steps must not see.
void Partition::survey(uint32_t target) {
  Outlined copy = copyFor(target);
  for (codegen::UnsupportedOp &unsupportedOp : chips[target]->survey(copy.function)) {
    Operation *op = unsupportedOp.op ? originOf(copy, unsupportedOp.op) : nullptr;
    if (op) {
      reject(target, op, std::move(unsupportedOp.reason));
    } else if (!unsupportedOp.op) {
      rejectsAll[target] = std::move(unsupportedOp.reason);
    }
  }
}

/// Surveys the op alone, without its epilogue.
bool Partition::runsWithoutEpilogue(uint32_t target, Operation *op) {
  SmallVector<Value> inputs;
  for (Value operand : op->getOperands()) {
    if (!device::getConstantRoot(operand) && !llvm::is_contained(inputs, operand)) {
      inputs.push_back(operand);
    }
  }
  Outlined alone = outline(function, {op}, inputs, {op->getResult(0)});
  Operation *contraction = alone.origins.begin()->first;
  device::splitEpilogue(cast<device::EpilogueInterface>(contraction));
  return llvm::none_of(chips[target]->survey(alone.function), [&](const codegen::UnsupportedOp &unsupportedOp) {
    return !unsupportedOp.op || unsupportedOp.op == contraction;
  });
}

/// Splits off an epilogue that the chip cannot run, so that it does not take its convolution, matmul or pool to another
/// target.
bool Partition::splitEpilogues() {
  bool changed = false;
  for (Operation *op : ops) {
    auto producer = dyn_cast<device::EpilogueInterface>(op);
    if (!producer || producer.getEpilogueRegion().empty() || device::hasOpenSizes(op)) {
      continue;
    }
    for (uint32_t target = 0; target + 1 < chips.size(); ++target) {
      if (rejected[target].contains(op) && runsWithoutEpilogue(target, op)) {
        device::MapOp map = device::splitEpilogue(producer);
        if (std::optional<unsigned> most = chips[target]->mostMapOperands()) {
          device::splitMap(map, *most);
        }
        changed = true;
        break;
      }
    }
  }
  return changed;
}

bool Partition::reject(uint32_t target, Operation *op, std::string reason) {
  return llvm::is_contained(ops, op) && rejected[target].try_emplace(op, std::move(reason)).second;
}

/// Builds the cost problem: the ops, their results, and the readers of each result.
Problem Partition::makeProblem() const {
  DenseMap<Operation *, uint32_t> numbers;
  for (auto [number, op] : llvm::enumerate(ops)) {
    numbers[op] = uint32_t(number);
  }
  Problem problem;
  for (const codegen::Target *target : chips) {
    problem.handOver.push_back(target->handOverSeconds());
  }
  for (Operation *op : ops) {
    Problem::Op &costs = problem.ops.emplace_back();
    for (auto [target, unsupportedOps] : llvm::zip_equal(chips, rejected)) {
      bool isWork = isa<device::WorkInterface>(op); // others read or write a size
      costs.seconds.push_back(unsupportedOps.contains(op) ? kCannot : isWork ? target->secondsOf(op) : 0);
    }
    for (Value result : op->getResults()) {
      Problem::Value value{numbers.lookup(op), {}, {}};
      for (const codegen::Target *target : chips) {
        value.transfer.push_back(target->transferSeconds(device::physicalBytes(result)));
      }
      for (Operation *user : result.getUsers()) {
        auto number = numbers.find(user);
        if (number != numbers.end() && !llvm::is_contained(value.consumers, number->second)) {
          value.consumers.push_back(number->second);
        }
      }
      problem.values.push_back(std::move(value));
    }
  }
  return problem;
}

/// Returns why the op does not run on a target before its own.
std::string Partition::reasonOf(Operation *op, uint32_t target, double seconds) const {
  std::string text;
  for (uint32_t before = 0; before < target; ++before) {
    if (auto reason = rejected[before].find(op); reason != rejected[before].end()) {
      text += text.empty() ? reason->second : "; on " + chips[before]->name() + " " + reason->second;
    }
  }
  if (text.empty()) {
    text = llvm::formatv("could run on the chip, but is cheaper beside its neighbours on the host: {0:f1} us there, "
                         "without a hand-over",
                         seconds * 1e6)
               .str();
  }
  return text;
}

/// Checks that the last target can run every op that the other targets cannot.
llvm::Error Partition::checkLastTarget() const {
  for (auto [target, reason] : llvm::zip_equal(chips, rejectsAll)) {
    if (!reason.empty()) {
      return top::unsupported(reason);
    }
  }
  std::string text;
  for (Operation *op : ops) {
    if (auto reason = rejected.back().find(op); reason != rejected.back().end()) {
      text += (text.empty() ? "'" : "; '") + top::getDisplayName(op->getLoc()) + "' " + reason->second;
    }
  }
  return text.empty() ? llvm::Error::success()
                      : top::unsupported("chip '" + chips.back()->name() + "' cannot run the model: " + text);
}

llvm::Error Partition::decide() {
  if (llvm::Error error = checkLastTarget()) {
    return error;
  }
  Problem problem = makeProblem();
  // If the first target can run everything but the padding of a bucket, it does: the user asked for it.
  bool runsAll =
      llvm::all_of(rejected.front(), [&](const auto &each) { return isPadding(each.first, *chips.front()); });
  std::vector<uint32_t> first;
  for (Operation *op : ops) {
    first.push_back(rejected.front().contains(op) ? uint32_t(chips.size() - 1) : 0);
  }
  Decision decision = runsAll ? arrange(problem, std::move(first)) : partition::decide(problem);
  allSubnets.assign(decision.phases.size(), {});
  moved.clear();
  for (auto [number, op] : llvm::enumerate(ops)) {
    Subnet &subnet = allSubnets[decision.phase[number]];
    double seconds = problem.ops[number].seconds[decision.target[number]];
    subnet.target = decision.target[number], subnet.seconds += seconds;
    subnet.ops.push_back(op);
    if (subnet.target != 0 && !isPadding(op, *chips.front()) &&
        !isa<device::ReshapeOp>(op)) { // views are free on every target
      moved.push_back({op, reasonOf(op, subnet.target, seconds), rejected.front().contains(op)});
    }
  }
  for (auto [number, subnet] : llvm::enumerate(allSubnets)) {
    bool isHost = subnet.target + 1 == chips.size() && chips.size() > 1;
    subnet.name = (isHost ? "host" : chips[subnet.target]->family().str()) + "_" + std::to_string(number);
    findPorts(subnet, function);
  }
  return llvm::Error::success();
}

double Partition::handOverSeconds(size_t subnet) const {
  return subnet == 0 ? 0
                     : chips[allSubnets[subnet - 1].target]->handOverSeconds() +
                           chips[allSubnets[subnet].target]->handOverSeconds();
}

int64_t countMacs(Operation *op) {
  auto work = dyn_cast<device::WorkInterface>(op);
  return work ? work.countMacs() : 0;
}

} // namespace tessera::partition
