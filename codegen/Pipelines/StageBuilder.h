//===- StageBuilder.h - The stage of a model under construction -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// The tensors, workspaces, sizes and subnets of a stage, whose parts PartPlanner and ControlPlanner add.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_PIPELINES_STAGEBUILDER_H
#define TESSERA_CODEGEN_PIPELINES_STAGEBUILDER_H

#include "codegen/Pipelines/PlannedModel.h"
#include "codegen/Pipelines/StageSizes.h"
#include "codegen/Pipelines/StateTensors.h"
#include "device_dialect/Transforms/PlaceBuffers.h"

#include "top_dialect/IR/TopShapeOps.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <map>

namespace tessera::codegen {

/// Number of the host's memory, which is also the memory of every chip without memory of its own. A chip's own memory
/// has the number of the chip.
inline constexpr int32_t kHostMemory = -1;

class StageBuilder {
public:
  /// A target with subnets in the file: its chip, first segment, workspace and memory.
  struct Linked {
    uint32_t chip = 0, section = 0, workspace = 0;
    int32_t memory = kHostMemory;
  };

  /// Creates the model, its net and stage, and the chips. The first target is the model's chip, even if it runs
  /// nothing. |keepsTensors|: no two tensors share memory, so that all can be read after a run.
  StageBuilder(mlir::func::FuncOp function, partition::Partition::Targets targets,
               std::vector<std::optional<TargetProgram>> programs, bool keepsTensors);

  /// Adds the inputs, outputs and states of the function.
  llvm::Error addPorts();
  /// Places the states, adds the tensors that no step names, and returns the model.
  PlannedModel finish();

  /// Adds a tensor without a place. |name| may be empty, or taken already.
  llvm::Expected<uint32_t> addTensor(mlir::Value value, llvm::StringRef name, bmodel::TensorRole role);
  llvm::Expected<uint32_t> addConstant(mlir::Value value);
  /// Adds a tensor of a target's program.
  uint32_t linkTensor(const Linked &to, bmodel::TensorDefT tensor);
  /// Returns the steps that set symbols to sizes.
  std::vector<std::unique_ptr<bmodel::StepDefT>> updateSteps(llvm::ArrayRef<top::SizeUpdate> updates) const;
  /// Returns the steps that check that two tensors have equal sizes.
  std::vector<std::unique_ptr<bmodel::StepDefT>> checkSteps(Shape a, Shape b);
  /// Returns the step that sets the symbol of |op| to an element of the tensor |from|.
  std::unique_ptr<bmodel::StepDefT> readStep(top::BindOp op, uint32_t from);
  /// Replaces the numbers of sizes by dim slots of the stage, in the program's tensors and launches.
  void linkSizes(SubnetProgram &program);
  bmodel::SubnetDefT &addSubnet(std::unique_ptr<bmodel::SubnetDefT> subnet, llvm::StringRef name, uint32_t chip);
  bmodel::SubnetDefT &addControlSubnet(llvm::StringRef name);
  /// Returns the index of the subnet that was added last.
  uint32_t lastSubnet() const { return uint32_t(stage->subnets.size() - 1); }
  uint32_t addWorkspace(int32_t memory);
  /// Returns the workspace for values that live between the subnets of a part, which the parts use one after another.
  uint32_t workspaceBetween(int32_t memory);
  /// Places tensors, which have the sizes and lifetimes of |buffers|, in a workspace.
  void place(uint32_t workspace, llvm::ArrayRef<uint32_t> slots, llvm::ArrayRef<device::Buffer> buffers);

  bmodel::TensorDefT &tensor(uint32_t slot) { return *stage->tensors[slot]; }
  bool keepsEveryTensor() const { return keepsTensors; }
  /// Return the slots of the function's arguments and results.
  llvm::ArrayRef<uint32_t> getArguments() const { return arguments; }
  llvm::ArrayRef<uint32_t> getResults() const { return results; }
  const Linked &linkOf(uint32_t target) const { return linked.at(target); }
  SubnetProgram &program(uint32_t target, size_t number) { return given[target]->subnets[number]; }

private:
  void createFrame(partition::Partition::Targets targets);
  void link(uint32_t target, const bmodel::ChipDefT &chip);
  void reserve(bmodel::WorkspaceDefT &workspace, SubnetProgram &program);
  llvm::Error addInput(mlir::BlockArgument argument);
  llvm::Error addOutput(mlir::OpOperand &result);
  llvm::Error addState(mlir::BlockArgument argument);
  llvm::Error addNextState(mlir::OpOperand &result);
  std::string uniqueName(const std::string &wanted);

  mlir::func::FuncOp function;
  std::vector<std::optional<TargetProgram>> given;
  bool keepsTensors;
  PlannedModel planned;
  bmodel::StageDefT *stage = nullptr;
  std::optional<StageSizes> sizes;
  llvm::StringSet<> names;
  std::vector<uint32_t> arguments, results; ///< slots
  llvm::StringMap<uint32_t> currentStates;  ///< slots by name
  std::vector<StateSlots> states;
  std::map<uint32_t, Linked> linked;   ///< by target
  std::map<int32_t, uint32_t> between; ///< workspaces for values between subnets, by memory
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_STAGEBUILDER_H
