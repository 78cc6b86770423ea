//===- Partition.cpp - A device function cut into subnets -----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Partition/Partition.h"

#include "bmodel/npu/program.h"
#include "codegen/Npu/ElementTypes.h"
#include "codegen/Npu/Npu.h"
#include "codegen/Partition/Decide.h"
#include "codegen/Partition/Outline.h"
#include "device_dialect/Transforms/Addresses.h"
#include "device_dialect/Transforms/ScalarBodies.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopConstOps.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace tessera::partition {
namespace {

bool isConstant(Operation *op) {
  return isa<top::WeightOp, top::ConstantOp>(op) ||
         (op->getNumResults() == 1 && isa<device::ReshapeOp>(op) && device::getConstantRoot(op->getResult(0)));
}

/// Views are not emitted, so nobody is asked about them; but what they are of has to have a form on the chip.
std::optional<std::string> refusedView(Operation *op) {
  if (!isa<device::ReshapeOp>(op)) {
    return std::nullopt;
  }
  Type element = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  if (npu::typeOf(element)) {
    return std::nullopt;
  }
  std::string text;
  llvm::raw_string_ostream(text) << "is a view of " << element << ", which the chip has not";
  return text;
}

/// The values that the ops make, and who among them reads them. Indices are those of |numbers|.
Problem problemOf(ArrayRef<Operation *> ops, const DenseMap<Operation *, uint32_t> &numbers,
                  const DenseMap<Operation *, std::string> &refused, const bmodel::npu::Chip &chip,
                  const HostModel &host) {
  Problem problem;
  problem.handOver = host.handOver;
  for (Operation *op : ops) {
    double npu = refused.contains(op) ? kCannot : npuSeconds(op, chip);
    problem.ops.push_back({npu, hostSeconds(op, host)});
    for (Value result : op->getResults()) {
      Problem::Value value{numbers.lookup(op), {}, transferSeconds(bytesOf(result), chip)};
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

/// What a subnet takes and leaves.
void findPorts(Subnet &subnet) {
  DenseSet<Operation *> inside(subnet.ops.begin(), subnet.ops.end());
  DenseSet<Value> seen;
  for (Operation *op : subnet.ops) {
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if ((!producer || (!inside.contains(producer) && !isConstant(producer))) && seen.insert(operand).second) {
        subnet.inputs.push_back(operand);
      }
    }
    for (Value result : op->getResults()) {
      if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !inside.contains(user); })) {
        subnet.outputs.push_back(result);
      }
    }
  }
}

} // namespace

Partition::Partition(func::FuncOp function, const bmodel::npu::Chip &chip) : function(function), chip(chip) {
  listOps();
  survey();
  if (!chipRefusal && splitEpilogues()) {
    listOps();
    survey();
  }
}

void Partition::listOps() {
  ops.clear(), refused.clear();
  for (Operation &op : function.getBody().front()) {
    if (!isConstant(&op) && !isa<func::ReturnOp>(op)) {
      ops.push_back(&op);
      if (std::optional<std::string> reason = refusedView(&op)) {
        refused[&op] = std::move(*reason);
      }
    }
  }
}

/// The emitter sees a copy of the whole function: addresses are of no use to those that come later.
void Partition::survey() {
  auto results = llvm::to_vector(function.getBody().front().getTerminator()->getOperands());
  SmallVector<Value> arguments(function.getArguments().begin(), function.getArguments().end());
  Outlined copy = outline(function, ops, arguments, results);
  PassManager passes(function.getContext());
  npu::buildAddresses(passes);
  if (failed(passes.run(*copy.module))) {
    chipRefusal = "internal error: the function cannot be given addresses";
    return;
  }
  for (npu::Refusal &refusal : npu::surveyProgram(copy.function, chip)) {
    Operation *op = refusal.op ? originOf(copy, refusal.op) : nullptr;
    if (op) {
      refuse(op, std::move(refusal.reason));
    } else if (!refusal.op) {
      chipRefusal = std::move(refusal.reason);
    }
  }
}

/// Tried on the op alone.
bool Partition::runsWithoutEpilogue(Operation *op) {
  SmallVector<Value> inputs;
  for (Value operand : op->getOperands()) {
    if (!device::getConstantRoot(operand) && !llvm::is_contained(inputs, operand)) {
      inputs.push_back(operand);
    }
  }
  Outlined alone = outline(function, {op}, inputs, {op->getResult(0)});
  Operation *product = alone.origins.begin()->first;
  device::splitEpilogue(cast<device::EpilogueInterface>(product));
  PassManager passes(function.getContext());
  npu::buildAddresses(passes);
  if (failed(passes.run(*alone.module))) {
    return false;
  }
  return llvm::none_of(npu::surveyProgram(alone.function, chip),
                       [&](const npu::Refusal &refusal) { return !refusal.op || refusal.op == product; });
}

/// That an unusual function behind a product or a pool goes to the host, or is a command of its own, must not take it
/// along.
bool Partition::splitEpilogues() {
  bool changed = false;
  for (Operation *op : ops) {
    auto producer = dyn_cast<device::EpilogueInterface>(op);
    if (producer && refused.contains(op) && !producer.getEpilogueRegion().empty() && runsWithoutEpilogue(op)) {
      device::splitMap(device::splitEpilogue(producer), bmodel::npu::kMapOperands);
      changed = true;
    }
  }
  return changed;
}

bool Partition::refuse(Operation *op, std::string reason) {
  return llvm::is_contained(ops, op) && refused.try_emplace(op, std::move(reason)).second;
}

void Partition::decide() {
  DenseMap<Operation *, uint32_t> numbers;
  for (auto [number, op] : llvm::enumerate(ops)) {
    numbers[op] = uint32_t(number);
  }
  Problem problem = problemOf(ops, numbers, refused, chip, host);
  // Where the chip can run everything it does: it is what was asked for.
  Decision decision =
      refused.empty() ? arrange(problem, std::vector<bool>(ops.size(), false)) : partition::decide(problem);
  made.assign(decision.phases, {});
  onHost.clear();
  for (auto [number, op] : llvm::enumerate(ops)) {
    Subnet &subnet = made[decision.phase[number]];
    subnet.onHost = decision.onHost[number];
    subnet.ops.push_back(op);
    subnet.seconds += subnet.onHost ? problem.ops[number].host : 0;
    if (subnet.onHost && !isa<device::ReshapeOp>(op)) { // views cost nothing on either side
      auto reason = refused.find(op);
      bool isRefused = reason != refused.end();
      onHost.push_back({op,
                        isRefused ? reason->second
                                  : llvm::formatv("could run on the chip, but costs less beside its neighbours on the "
                                                  "host: {0:f1} us there, and no hand-over",
                                                  problem.ops[number].host * 1e6)
                                        .str(),
                        isRefused});
    }
  }
  for (auto [number, subnet] : llvm::enumerate(made)) {
    subnet.name = (subnet.onHost ? "host_" : "npu_") + std::to_string(number);
    findPorts(subnet);
  }
}

} // namespace tessera::partition
