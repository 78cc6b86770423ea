//===- AbacusTarget.cpp - Target of the smallest family of chips ----------===//
// SPDX-License-Identifier: Apache-2.0
#include "AbacusTarget.h"

#include "Commands.h"
#include "codegen/Target/Tensors.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/Transforms/Addresses.h"
#include "device_dialect/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace tessera::abacus {
namespace {

using codegen::TargetProgram;

enum Section : uint32_t { kCode, kConstants };

/// Returns true for ops that need no command: constants and views.
bool isFree(Operation *op) { return isa<device::ReshapeOp>(op) || op->hasTrait<OpTrait::ConstantLike>(); }

/// Emits a subnet as one step. Its tensors are the arguments and constants that it reads, its results, and the
/// workspace.
class SubnetEmitter {
public:
  SubnetEmitter(const codegen::Subnet &subnet, TargetProgram &program)
      : function(subnet.function), arguments(function.getNumArguments()), results(function.getNumResults()),
        program(program), made(program.subnets.emplace_back()) {}

  llvm::Error emit() {
    for (Operation &op : function.getBody().front().without_terminator()) {
      if (llvm::Error error = isFree(&op) ? llvm::Error::success() : commands.add(&op)) {
        return error;
      }
    }
    codegen::setWorkspaceSizes(function, made);
    made.ops = commands.commands.size();
    made.subnet.kind = bmodel::SubnetKind::Device, made.subnet.kernel_abi = bmodel::abacus::kVersion;
    made.subnet.code_segment = int32_t(kCode);
    return addStep();
  }

private:
  /// Replaces values in the commands' views by tensors of the step.
  llvm::Error link() {
    auto constants = uint32_t(llvm::count_if(commands.values, device::getConstantRoot));
    std::vector<std::pair<uint32_t, uint64_t>> places; // tensor and first element, by value
    for (Value value : commands.values) {
      if (Value root = device::getConstantRoot(value)) {
        places.emplace_back(arguments + uint32_t(made.tensors.size()), 0);
        std::optional<top::TensorData> data = top::getConstantData(root);
        auto tensor = codegen::describeTensor(cast<RankedTensorType>(value.getType()), "");
        if (!data || !tensor) {
          return llvm::createStringError("internal error: the weight store lacks a constant");
        }
        tensor->role = bmodel::TensorRole::Constant, tensor->place = bmodel::Place::Segment;
        tensor->place_index = kConstants;
        tensor->offset = program.sections[kConstants].append(data->bytes);
        program.constants.push_back(*data); // owns the bytes that the section refers to
        made.tensors.push_back(std::move(*tensor));
        continue;
      }
      device::Address address = *device::getAddress(value);
      uint32_t tensor = address.memory < 0 ? uint32_t(-address.memory - 1)
                        : address.memory   ? arguments + constants + uint32_t(address.memory - 1)
                                           : arguments + constants + results;
      places.emplace_back(tensor, uint64_t(address.offset) / sizeof(float));
    }
    for (bmodel::abacus::Command &command : commands.commands) {
      std::tie(command.result.tensor, command.result.offset) = places[command.result.tensor];
      for (bmodel::abacus::View &view : MutableArrayRef(command.operands).take_front(command.operandCount)) {
        std::tie(view.tensor, view.offset) = places[view.tensor];
      }
    }
    return llvm::Error::success();
  }

  llvm::Error addStep() {
    if (llvm::Error error = link()) {
      return error;
    }
    bmodel::RunStreamOnDefT run;
    for (uint32_t slot = 0; slot < arguments + results + made.tensors.size(); ++slot) { // arguments, results, constants
      bool isResult = slot >= arguments && slot < arguments + results;
      (isResult ? run.outputs : run.inputs).push_back(slot);
    }
    const auto *first = reinterpret_cast<const char *>(commands.commands.data());
    program.memory.emplace_back(first, first + made.ops * sizeof(bmodel::abacus::Command));
    run.offset = program.sections[kCode].append(program.memory.back()), run.bytes = program.memory.back().size();
    auto step = std::make_unique<bmodel::StepDefT>();
    step->writes = run.outputs;
    step->op.Set(std::move(run));
    made.subnet.plan.push_back(std::move(step));
    auto slotOf = [&](int64_t memory) { return uint32_t(memory < 0 ? -memory - 1 : arguments + memory - 1); };
    for (OpOperand &result : function.getBody().front().getTerminator()->getOpOperands()) {
      int64_t memory = device::getAddress(result.get())->memory, wanted = int64_t(result.getOperandNumber()) + 1;
      if (memory != wanted) { // a view of an argument or of another result
        made.subnet.plan.push_back(codegen::copyStep(slotOf(memory), slotOf(wanted)));
      }
    }
    return llvm::Error::success();
  }

  func::FuncOp function;
  uint32_t arguments, results;
  TargetProgram &program;
  codegen::SubnetProgram &made;
  Commands commands;
};

class AbacusChip final : public codegen::Target {
public:
  StringRef family() const override { return "abacus"; }
  bmodel::ChipDefT describe() const override {
    bmodel::ChipDefT chip;
    chip.name = chip.family = "abacus", chip.memory = bmodel::MemoryKind::Device;
    return chip;
  }

  std::vector<codegen::UnsupportedOp> survey(func::FuncOp function) const override {
    std::vector<codegen::UnsupportedOp> unsupported;
    for (Operation &op : function.getBody().front().without_terminator()) {
      if (llvm::Error error = isFree(&op) ? llvm::Error::success() : Commands().add(&op)) {
        unsupported.push_back({&op, llvm::toString(std::move(error))});
      }
    }
    return unsupported;
  }
  /// Returns a time far below the host's, so that the partition prefers the Abacus.
  double secondsOf(Operation *) const override { return 1e-9; }
  double transferSeconds(int64_t bytes) const override { return double(bytes) * 1e-15; }
  double handOverSeconds() const override { return 1e-12; }

  /// Gives each value its own storage. The sums of a matmul are stored in its result before the epilogue reads its
  /// operands, so none of these may be overwritten.
  void buildPasses(OpPassManager &manager, const codegen::CompileOptions &) const override {
    manager.addNestedPass<func::FuncOp>(device::createAssignAddressesPass({.separate = true}));
    manager.addNestedPass<func::FuncOp>(device::createVerifyAddressesPass());
  }

  llvm::Expected<std::optional<TargetProgram>> compile(ArrayRef<codegen::Subnet> subnets,
                                                       const codegen::CompileOptions &,
                                                       const codegen::PhaseObserver &observer,
                                                       std::vector<codegen::UnsupportedOp> &) const override {
    observer.begin("emit");
    TargetProgram program;
    program.sections.emplace_back(bmodel::SegmentKind::Code);
    program.sections.emplace_back(bmodel::SegmentKind::Constants);
    for (const codegen::Subnet &subnet : subnets) {
      if (llvm::Error error = SubnetEmitter(subnet, program).emit()) {
        return std::move(error);
      }
    }
    return std::move(program);
  }
};

} // namespace

const codegen::Family kFamily = {
    .name = "abacus",
    .chips = [] { return std::vector<std::string>{"abacus"}; },
    .create = [](const codegen::ChipRequest &) -> llvm::Expected<std::unique_ptr<codegen::Target>> {
      return std::make_unique<AbacusChip>();
    },
    .registerDialects = [](DialectRegistry &) {},
    .registerPasses = [] {}};

} // namespace tessera::abacus
