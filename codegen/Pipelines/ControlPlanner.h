//===- ControlPlanner.h - Control flow of a stage ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_PIPELINES_CONTROLPLANNER_H
#define TESSERA_CODEGEN_PIPELINES_CONTROLPLANNER_H

#include "codegen/Pipelines/StageBuilder.h"
#include "top_dialect/IR/TopConstOps.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace tessera::codegen {

/// Adds the control subnets of a function that consists of calls, control flow and constants. Each value has one slot
/// in the host's memory: both branches of an if write the slots of its results, and a carried value of a loop keeps its
/// slot from pass to pass.
class ControlPlanner {
public:
  ControlPlanner(StageBuilder &builder, llvm::ArrayRef<PlannedPart> parts);

  llvm::Error plan(mlir::func::FuncOp function);

private:
  /// A loop around the current op: the values from before it that its body uses live until its end.
  struct OpenLoop {
    int64_t begin;
    llvm::SetVector<uint32_t> used;
  };
  using Slots = llvm::SmallVector<uint32_t>;
  /// The results of a block: values, the slots that receive them, and the values whose types the slots have.
  struct Results {
    llvm::SmallVector<mlir::Value> values, like;
    Slots to;

    void add(mlir::Value value, mlir::Value likeValue, uint32_t slot) {
      values.push_back(value), like.push_back(likeValue), to.push_back(slot);
    }
  };
  /// The carried values of a loop.
  struct Carried {
    mlir::ValueRange init, arguments, results;
    Slots slots; ///< of the results
  };

  /// Adds the steps of |block| to |subnet|, and stores its results. |updates|: the sizes that these have then.
  llvm::Error planBlock(mlir::Block &block, const Results &results, llvm::ArrayRef<top::SizeUpdate> updates,
                        bmodel::SubnetDefT &subnet);
  llvm::Error planOp(mlir::Operation *op, bmodel::SubnetDefT &subnet);
  void chooseDestinations(mlir::Block &block, const Results &results);
  llvm::Error copyResults(const Results &results, bmodel::SubnetDefT &subnet);
  llvm::Error planCall(mlir::func::CallOp call, bmodel::SubnetDefT &subnet);
  llvm::Error planIf(top::IfOp op, bmodel::SubnetDefT &subnet);
  llvm::Error planLoop(top::LoopOp op, bmodel::SubnetDefT &subnet);
  llvm::Expected<bmodel::LoopDefT> openLoop(top::LoopOp op, bmodel::SubnetDefT &subnet);
  llvm::Error enterLoop(top::LoopOp op, const Carried &carried, bmodel::SubnetDefT &subnet);
  llvm::Error beginPass(const Carried &carried, bmodel::SubnetDefT &body);
  llvm::Error planSizeCast(mlir::Operation *op, bmodel::SubnetDefT &subnet);
  llvm::Error planBind(top::BindOp op, bmodel::SubnetDefT &subnet);
  llvm::Expected<uint32_t> planBranch(mlir::Region &region, const llvm::Twine &name, mlir::ValueRange results,
                                      llvm::ArrayRef<uint32_t> to);
  void addUpdates(llvm::ArrayRef<top::SizeUpdate> updates, bmodel::SubnetDefT &subnet);
  void closeLoop();

  /// Returns the slot of a value that is read; adds it if the value is a constant.
  llvm::Expected<uint32_t> slotOf(mlir::Value value);
  llvm::Expected<Slots> slotsOf(mlir::ValueRange values);
  /// Returns the slot of a value that is written: where it is returned to, or a new variable.
  llvm::Expected<uint32_t> storeOf(mlir::Value value);
  llvm::Expected<Slots> storesOf(mlir::ValueRange values);
  llvm::Expected<uint32_t> addVariable(mlir::Value like);
  /// Extends the lifetime of a variable to now.
  void touch(uint32_t slot);
  void addStep(bmodel::SubnetDefT &subnet, bmodel::StepOpUnion op, mlir::Operation *from, llvm::ArrayRef<uint32_t> to);

  StageBuilder &builder;
  llvm::StringMap<const PlannedPart *> parts;
  llvm::DenseMap<mlir::Value, uint32_t> slots;
  llvm::DenseMap<mlir::Value, uint32_t> destinations;  ///< of values that a block returns
  llvm::MapVector<uint32_t, device::Buffer> variables; ///< by slot
  llvm::SmallVector<OpenLoop> loops;                   ///< the innermost one last
  int64_t now = 0;                                     ///< number of steps so far
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_PIPELINES_CONTROLPLANNER_H
