//===- PartPlanner.cpp - Adds the subnets of a part to a stage ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/PartPlanner.h"

#include "codegen/Pipelines/StepSlots.h"
#include "codegen/Target/Tensors.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Addresses.h"
#include "top_dialect/IR/Names.h"

using namespace mlir;

namespace tessera::codegen {

static ValueRange resultsOf(func::FuncOp function) { return function.getBody().front().getTerminator()->getOperands(); }

std::vector<uint32_t> PartPlanner::slotsOf(ArrayRef<Value> values, int32_t memory) const {
  std::vector<uint32_t> found;
  for (Value value : values) {
    found.push_back(slots.at({value, memory}));
  }
  return found;
}

llvm::Error PartPlanner::plan(ArrayRef<uint32_t> inputs, ArrayRef<uint32_t> outputs) {
  bindPorts(inputs, outputs);
  findTransfers();
  if (llvm::Error error = placeBetween()) {
    return error;
  }
  addSubnets();
  for (auto [value, to] : repeated) {
    auto known = slots.find({value, kHostMemory});
    llvm::Expected<uint32_t> from = known == slots.end() ? builder.addConstant(value) : known->second;
    if (!from) {
      return from.takeError();
    }
    main->plan.push_back(copyStep(*from, to));
  }
  return llvm::Error::success();
}

void PartPlanner::bindPorts(ArrayRef<uint32_t> inputs, ArrayRef<uint32_t> outputs) {
  func::FuncOp function = part.function;
  for (auto [argument, slot] : llvm::zip_equal(function.getArguments(), inputs)) {
    slots[{argument, kHostMemory}] = slot;
    available.insert({argument, kHostMemory});
    home[argument] = kHostMemory;
  }
  for (auto [value, slot] : llvm::zip_equal(resultsOf(function), outputs)) {
    if (device::getConstantRoot(value) || !slots.try_emplace({value, kHostMemory}, slot).second) {
      repeated.emplace_back(value, slot);
    }
  }
}

/// Ensures that a value lies in a memory when a subnet begins.
void PartPlanner::bring(Value value, int32_t memory, int64_t subnet, std::vector<std::pair<Copy, Copy>> &copies) {
  Copy wanted(value, memory), source(value, home.at(value));
  if (source.second != memory && source.second != kHostMemory && memory != kHostMemory) {
    bring(value, kHostMemory, subnet, copies); // chips cannot access each other's memory
    source.second = kHostMemory;
  }
  if (available.insert(wanted).second) {
    copies.emplace_back(source, wanted);
    if (!slots.contains(wanted)) {
      between[wanted] = {device::physicalBytes(value), subnet, subnet};
    }
  }
  for (const Copy &used : {source, wanted}) {
    if (auto found = between.find(used); found != between.end()) {
      found->second.last = std::max(found->second.last, subnet);
    }
  }
}

/// Determines the copies before each subnet, and the lifetimes of values between subnets. After the last subnet all
/// results of the model must be in the host's memory.
void PartPlanner::findTransfers() {
  ArrayRef<partition::Subnet> subnets = part.partition->subnets();
  before.resize(subnets.size() + 1);
  for (auto [number, subnet] : llvm::enumerate(subnets)) {
    int32_t memory = linkOf(number).memory;
    for (Value value : subnet.inputs) {
      bring(value, memory, int64_t(number), before[number]);
    }
    for (Value value : subnet.outputs) {
      home[value] = memory;
      available.insert({value, memory});
      if (!slots.contains({value, memory})) {
        between[{value, memory}] = {device::physicalBytes(value), int64_t(number), int64_t(number)};
      }
    }
  }
  for (Value result : resultsOf(part.function)) {
    if (!device::getConstantRoot(result)) {
      bring(result, kHostMemory, int64_t(subnets.size()), before.back());
    }
  }
}

llvm::Error PartPlanner::placeBetween() {
  std::map<int32_t, SmallVector<Copy>> byMemory;
  for (const auto &[copy, buffer] : between) {
    byMemory[copy.second].push_back(copy);
  }
  for (const auto &[memory, copies] : byMemory) {
    SmallVector<device::Buffer> buffers = llvm::map_to_vector(copies, [&](Copy copy) { return between[copy]; });
    SmallVector<uint32_t> added;
    for (Copy copy : copies) {
      auto slot = builder.addTensor(copy.first, top::getTensorName(copy.first), bmodel::TensorRole::Workspace);
      if (!slot) {
        return slot.takeError();
      }
      added.push_back(slots[copy] = *slot);
    }
    builder.place(builder.workspaceBetween(memory), added, buffers);
  }
  return llvm::Error::success();
}

/// Adds the subnets. A run starts in the only subnet if the model's chip runs everything and no copies are needed,
/// otherwise in a control subnet without code. Copies within the host's memory are steps of the host's own subnet.
void PartPlanner::addSubnets() {
  size_t count = part.partition->subnets().size();
  bool isAlone = !main && part.partition->isWhole() && before.front().empty() && before.back().empty() &&
                 (repeated.empty() || linkOf(0).memory == kHostMemory);
  if (!isAlone && !main) {
    main = &builder.addControlSubnet("main");
  }
  for (size_t number = 0; number < count; ++number) {
    bmodel::SubnetDefT &added = addSubnet(number);
    if (isAlone) {
      main = &added;
      main->name = "main";
    } else {
      addCopies(before[number]);
      addCall(number);
    }
  }
  if (!isAlone) {
    addCopies(before.back());
  }
}

void PartPlanner::addCopies(ArrayRef<std::pair<Copy, Copy>> copies) {
  for (const auto &[from, to] : copies) {
    main->plan.push_back(copyStep(slots.at(from), slots.at(to)));
  }
}

/// Returns the stage's slots for a program's slots: its arguments and results, then its own tensors.
std::vector<uint32_t> PartPlanner::linkTensors(const partition::Subnet &subnet, SubnetProgram &program) {
  const StageBuilder::Linked &to = builder.linkOf(subnet.target);
  std::vector<uint32_t> map = slotsOf(subnet.inputs, to.memory);
  llvm::append_range(map, slotsOf(subnet.outputs, to.memory));
  for (bmodel::TensorDefT &tensor : program.tensors) {
    if (tensor.view_of >= 0) {
      uint32_t of = map[size_t(tensor.view_of)];
      const bmodel::TensorDefT &root = builder.tensor(of);
      tensor.view_of = int32_t(of);
      if (root.view_of >= 0) {
        tensor.view_of = root.view_of, tensor.offset += root.offset;
      }
    }
    map.push_back(builder.linkTensor(to, std::move(tensor)));
  }
  return map;
}

bmodel::SubnetDefT &PartPlanner::addSubnet(size_t number) {
  const partition::Subnet &subnet = part.partition->subnets()[number];
  const StageBuilder::Linked &to = builder.linkOf(subnet.target);
  SubnetProgram &program = builder.program(subnet.target, part.programs[number]);
  builder.linkSizes(program);
  std::vector<uint32_t> map = linkTensors(subnet, program);
  bmodel::SubnetDefT &result =
      builder.addSubnet(std::make_unique<bmodel::SubnetDefT>(std::move(program.subnet)), part.nameOf(subnet), to.chip);
  result.code_segment += result.code_segment >= 0 ? int32_t(to.section) : 0;
  if (result.kind == bmodel::SubnetKind::Device) { // streams of older kinds use workspace 0
    result.workspace = int32_t(to.workspace);
  }
  for (auto &step : result.plan) {
    visitSlots(*step, [&](uint32_t &slot) { slot = map[slot]; });
  }
  for (const partition::MovedOp &moved : part.partition->movedOps()) {
    if (llvm::is_contained(subnet.ops, moved.op)) {
      result.reason +=
          (result.reason.empty() ? "'" : "; '") + top::getDisplayName(moved.op->getLoc()) + "' " + moved.reason;
    }
  }
  return result;
}

/// Adds a call of the subnet that was added last. After a subnet of another target, the call includes the hand-over.
void PartPlanner::addCall(size_t number) {
  bmodel::CallSubnetDefT callee;
  callee.subnet = builder.lastSubnet();
  auto step = std::make_unique<bmodel::StepDefT>();
  step->op.Set(callee);
  step->writes = slotsOf(part.partition->subnets()[number].outputs, linkOf(number).memory);
  step->debug = std::make_unique<bmodel::StepDebugDefT>();
  step->debug->device_op = "subnet " + part.nameOf(part.partition->subnets()[number]);
  step->debug->estimated_ns = part.partition->handOverSeconds(number) * 1e9;
  main->plan.push_back(std::move(step));
}

} // namespace tessera::codegen
